"""Limits: who counts as one client, how long one has to wait, and what the memory of limits may take."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from pages import clients
from pages.classroom import joining
from pages.classroom.joining import Joins
from pages.classroom.presence import EXPECTED_S, SILENT_S, Presence
from pages.clients import Tries, client_of


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"), ("2001:db8:1:2:bbbb::9", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"), ("testclient", "testclient"), (None, ""),
    ],
)  # fmt: skip
def test_a_client_is_an_address_and_of_the_new_kind_its_network(host: str | None, client: str) -> None:
    scope = {"type": "http", "headers": [], "client": (host, 1) if host else None}
    assert client_of(Request(scope)) == client


def test_too_many_failures_are_forgiven_after_a_while() -> None:
    now = [0.0]
    tries = Tries(most=3, within_s=60.0, now=lambda: now[0])
    for _ in range(3):
        assert not tries.too_many("a")
        tries.note("a")
    assert tries.too_many("a")
    assert not tries.too_many("b")
    now[0] = 61.0
    assert not tries.too_many("a")


def test_limits_take_no_more_memory_than_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (clients, joining):
        monkeypatch.setattr(module, "CLIENTS_KEPT", 5)
    tries, joins = Tries(most=1, within_s=60.0), Joins(most=1)
    for number in range(20):
        tries.note(str(number))
        assert joins.take("ABC234", str(number))
    assert [number for number in range(20) if tries.too_many(str(number))] == list(range(15, 20))
    assert [joins.take("ABC234", str(number)) for number in (15, 16, 17, 18, 19, 3)] == [False] * 5 + [True]


def test_a_place_of_which_nothing_came_is_given_back() -> None:
    joins = Joins(most=1)
    joins.give_back("ABC234", "a")
    assert joins.take("ABC234", "a")
    assert not joins.take("ABC234", "a")
    assert joins.take("XYZ789", "a"), "each class has its own"
    joins.give_back("ABC234", "a")
    assert joins.take("ABC234", "a")


def test_presence_counts_people_not_tabs_and_expects_them_back_for_a_while() -> None:
    now = [0.0]
    presence = Presence(now=lambda: now[0])
    presence.came(1)
    presence.came(1)
    presence.came(2)
    presence.went(1)
    assert (presence.here, presence.reconnecting) == (2, 0)
    presence.went(1)
    presence.went(2, expected=False)
    assert (presence.here, presence.reconnecting) == (0, 1)
    presence.came(1)
    assert (presence.here, presence.reconnecting) == (1, 0)
    presence.went(1)
    now[0] = EXPECTED_S + 1
    assert presence.reconnecting == 0


def test_who_has_fallen_silent_is_reconnecting_for_a_while_and_then_not_there() -> None:
    now = [0.0]
    presence = Presence(now=lambda: now[0])
    for person in (1, 2, 3):
        presence.came(person)
        presence.heard(person)
    presence.came(4)
    presence.heard(5)
    assert (presence.here, presence.reconnecting) == (4, 0), "who has no line is nowhere"
    now[0] = SILENT_S
    presence.heard(1)
    now[0] = SILENT_S + 1
    assert (presence.here, presence.reconnecting) == (2, 2), "4 never gave a sign: none is expected"
    presence.heard(2)
    assert (presence.here, presence.reconnecting) == (3, 1)
    now[0] = SILENT_S + EXPECTED_S + 1
    assert (presence.here, presence.reconnecting) == (1, 2)
    presence.went(3)  # its line is found dead at last
    assert (presence.here, presence.reconnecting) == (1, 2)
    presence.came(2)
    assert (presence.here, presence.reconnecting) == (2, 1), "another line of its own: it is there again"
    presence.went(2)
    assert (presence.here, presence.reconnecting) == (2, 1)
    presence.went(2)
    assert (presence.here, presence.reconnecting) == (1, 2)
