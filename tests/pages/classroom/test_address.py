"""The address on the code: never one that a phone cannot open without saying so, and what to do instead."""

from __future__ import annotations

import dataclasses

import pytest

from pages.classroom.address import Interface, Surroundings, local_only, objections, phone_address

LAN = Interface(name="wlan0", address="192.168.1.23")
WIRE = Interface(name="eth0", address="10.4.0.9")
DOCKER = Interface(name="docker0", address="172.17.0.1")
VPN = Interface(name="tailscale0", address="100.101.2.3")
AT_HOME = Surroundings(page_url="http://localhost:8501", interfaces=(DOCKER, LAN, VPN))


def of(around: Surroundings, **changed: object) -> tuple[str, str, list[tuple[bool, str, str]]]:
    around = dataclasses.replace(around, **changed)  # type: ignore[arg-type]
    address = phone_address(around)
    return address.url, address.source, [(each.sure, each.words, each.next) for each in objections(address, around)]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "app.localhost", "127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", ""])
def test_what_is_only_the_machine_itself(host: str) -> None:
    assert local_only(host)


@pytest.mark.parametrize("host", ["192.168.1.2", "example.org", "localhost.example.org", "fd00::2", "127.example.org"])
def test_what_is_not(host: str) -> None:
    assert not local_only(host)


def test_opened_as_localhost_phones_get_the_address_in_the_rooms_network() -> None:
    assert of(AT_HOME) == ("http://192.168.1.23:8501", "interface", [])


def test_the_way_by_which_the_instructor_came_is_taken() -> None:
    assert of(AT_HOME, page_url="http://192.168.1.23:8501/lab/") == ("http://192.168.1.23:8501/lab", "page", [])


def test_the_setting_comes_first() -> None:
    assert of(AT_HOME, public_url="https://class.example.org/") == ("https://class.example.org", "setting", [])


@pytest.mark.parametrize("page_url", ["http://localhost:8501", "http://127.0.0.1:8501"])
def test_without_a_network_it_certainly_fails(page_url: str) -> None:
    url, _, ((sure, words, what_next),) = of(AT_HOME, page_url=page_url, interfaces=(DOCKER, VPN))
    assert (url, sure) == (page_url, True)
    assert "the phone itself" in words
    assert "SHARDLAB_PUBLIC_URL" in what_next


def test_a_setting_that_names_this_machine_is_refused_too() -> None:
    _, source, ((sure, words, what_next),) = of(AT_HOME, public_url="http://127.0.0.1:9000")
    assert (source, sure) == ("setting", True)
    assert "http://127.0.0.1:9000" in words
    assert "Open this page as http://192.168.1.23:8501/teach" in what_next


def test_a_server_that_listens_to_itself_only() -> None:
    url, _, found = of(AT_HOME, listens_on="127.0.0.1")
    assert url == "http://localhost:8501", "another address would not be answered either"
    assert [each[0] for each in found] == [True, True]
    assert any("--server.address 0.0.0.0" in each[2] for each in found)
    assert of(AT_HOME, listens_on="0.0.0.0")[2] == []


def test_behind_a_proxy_listening_locally_is_right() -> None:
    _, _, found = of(AT_HOME, page_url="https://class.example.org", listens_on="127.0.0.1", proxied=True)
    assert [each[0] for each in found] == [False]
    assert "A proxy stands before the server" in found[0][1]
    assert of(AT_HOME, public_url="https://class.example.org", listens_on="127.0.0.1", proxied=True)[2] == []


@pytest.mark.parametrize(
    ("host", "sure", "words"),
    [
        ("172.17.0.1", True, "docker0, which only this machine can reach"),
        ("100.101.2.3", False, "a VPN"),
        ("169.254.3.4", True, "no address of a network"),
        ("lab.local", False, "older phones do not"),
        ("labserver", False, "a short name"),
    ],
)
def test_addresses_that_few_phones_reach(host: str, sure: bool, words: str) -> None:
    _, _, ((found, said, what_next),) = of(AT_HOME, page_url=f"http://{host}:8501")
    assert found is sure
    assert words in said
    assert what_next


def test_in_a_container_nothing_is_promised() -> None:
    url, _, found = of(AT_HOME, in_container=True)
    assert url == "http://localhost:8501"
    assert any("container" in each[1] for each in found)
    assert of(AT_HOME, in_container=True, page_url="http://192.168.7.7:8501")[2] == [], "the machine around it, by its own address"


def test_of_several_networks_one_is_chosen_and_the_others_are_named() -> None:
    url, _, ((sure, words, what_next),) = of(AT_HOME, interfaces=(WIRE, LAN))
    assert url == "http://10.4.0.9:8501"
    assert not sure
    assert "10.4.0.9 (eth0)" in words
    assert "192.168.1.23 (wlan0)" in what_next


def test_the_newer_kind_of_address_stands_in_brackets() -> None:
    six = Interface(name="eth0", address="fd00::2")
    assert of(AT_HOME, interfaces=(six,))[0] == "http://[fd00::2]:8501"
    assert of(AT_HOME, interfaces=(six, LAN))[0] == "http://192.168.1.23:8501", "short enough to be typed"


def test_joining() -> None:
    address = phone_address(AT_HOME)
    assert address.joining("AB23CD") == "http://192.168.1.23:8501/c/AB23CD"
    assert address.short == "192.168.1.23:8501"
