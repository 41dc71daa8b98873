"""Signing in as an instructor by OpenID Connect in a real browser, at a provider of the tests: who may, who may not, and the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from joserfc.jwk import RSAKey
from playwright.sync_api import Page, expect

from pages.account_return import ACCOUNT_COOKIE
from pages.classroom.instructor import INSTRUCTOR_COOKIE
from tests.browser.checks import assert_accessible, settle
from tests.browser.conftest import UNMEASURED
from tests.browser.openid import Provider, provider, write_secrets
from tests.browser.server import AppServer
from tests.browser.test_teach import make_class

ADA, EVE = "ada@example.org", "eve@example.org"
ACCOUNTS = {
    "Ada": {"email": "Ada@Example.org", "email_verified": True},
    "Eve": {"email": EVE, "email_verified": True},
    "Somebody as Ada": {"email": ADA, "email_verified": False},
}


@pytest.fixture(scope="module")
def openid() -> Iterator[Provider]:
    with provider(ACCOUNTS) as made:
        yield made


@pytest.fixture(scope="module")
def school(openid: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """An app that is set up for the provider's accounts, as docs/teach-a-class.md says; Ada is an instructor."""
    folder = tmp_path_factory.mktemp("accounts")
    server = AppServer(folder / "data", env={**UNMEASURED, "SHARDLAB_INSTRUCTORS": ADA}, cwd=folder / "started-in")
    write_secrets(folder / "started-in", openid.secrets_toml(server.url))
    with server:
        yield server


@pytest.fixture
def sign_in(open_page: Callable[..., Page], school: AppServer) -> Callable[[str], Page]:
    """`sign_in("Ada")`: the instructors' page, once Ada has come back from the provider."""

    def signed_in(name: str) -> Page:
        page = open_page("/teach", base=school.url)
        choose(page, name, school)
        return page

    return signed_in


def choose(page: Page, name: str, app: AppServer) -> None:
    page.get_by_role("button", name="Sign in with your account").click()
    page.get_by_role("heading", name="Choose an account").wait_for()
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_url(f"{app.url}/teach**")
    settle(page)


def cookies(page: Page) -> set[str]:
    return {cookie["name"] for cookie in page.context.cookies()}  # type: ignore[typeddict-item]


def test_an_instructor_comes_in_makes_a_class_and_goes(
    sign_in: Callable[[str], Page], school: AppServer, openid: Provider, allow_faults: Callable[[str], None]
) -> None:
    page = sign_in("Ada")
    link = page.get_by_role("link", name="Go on as Ada@Example.org")
    ticket = link.get_attribute("href")
    assert_accessible(page)
    assert INSTRUCTOR_COOKIE not in cookies(page), "the account alone opens nothing"
    link.click()
    page.get_by_role("heading", name="Your classes").wait_for()
    settle(page)
    code = make_class(page, "By an account")
    console = page.context.new_page()
    console.goto(f"{school.url}/class/{code}/console")
    console.get_by_role("button", name="Open the vote").wait_for()
    console.close()

    allow_faults("403")
    other = page.context.browser.new_context()  # type: ignore[union-attr]
    assert other.new_page().goto(f"{school.url}/{ticket}").status == 403  # type: ignore[union-attr]
    assert other.cookies() == []
    other.close()

    page.get_by_role("button", name="All classes").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in with your account").wait_for()
    assert page.url == f"{school.url}/teach"
    assert not {INSTRUCTOR_COOKIE, ACCOUNT_COOKIE} & cookies(page)
    assert openid.asked[-1] == "/out", "the provider was told too"
    expect(page.get_by_role("link", name="Go on as")).to_have_count(0)
    expect(page.get_by_text(code)).to_have_count(0)
    assert page.goto(f"{school.url}/class/{code}/console").url.startswith(f"{school.url}/instructor/sign-in")  # type: ignore[union-attr]


def test_somebody_else_is_told_who_may(sign_in: Callable[[str], Page], school: AppServer) -> None:
    page = sign_in("Eve")
    expect(page.get_by_role("alert")).to_contain_text(f"{EVE} is not among the instructors of this server.")
    assert_accessible(page)
    expect(page.get_by_role("link", name="Go on as")).to_have_count(0)
    page.get_by_role("button", name="Sign in with another account").click()
    choose(page, "Ada", school)
    page.get_by_role("link", name="Go on as Ada@Example.org").wait_for()


def test_an_address_that_nobody_answers_for_is_nobodys(sign_in: Callable[[str], Page]) -> None:
    page = sign_in("Somebody as Ada")
    expect(page.get_by_role("alert")).to_contain_text(f"does not say that {ADA} is really yours")
    expect(page.get_by_role("link", name="Go on as")).to_have_count(0)


def test_who_turns_back_at_the_provider_is_told_so(sign_in: Callable[[str], Page], school: AppServer) -> None:
    page = sign_in("nobody")
    expect(page.get_by_role("alert")).to_contain_text("Nobody was signed in.")
    assert ACCOUNT_COOKIE not in cookies(page)
    assert_accessible(page)
    choose(page, "Ada", school)
    page.get_by_role("link", name="Go on as").wait_for()
    expect(page.get_by_text("Nobody was signed in.")).to_have_count(0)


def test_a_forged_token_signs_nobody_in(sign_in: Callable[[str], Page], openid: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openid, "signs_with", RSAKey.generate_key(2048))
    page = sign_in("Ada")
    expect(page.get_by_role("alert")).to_contain_text("Nobody was signed in.")
    assert not {INSTRUCTOR_COOKIE, ACCOUNT_COOKIE} & cookies(page)
