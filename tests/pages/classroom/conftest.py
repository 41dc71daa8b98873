"""A class over HTTP: its routes in one process, on a store of the test's own and on runs that only pretend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from lessons.classroom import Classroom, ClassState
from lessons.store import Store, open_store
from pages.classroom import instructor
from pages.classroom.instructor import Instructors
from pages.classroom.routes import ClassRoutes
from scenarios.feed import live_routes
from scenarios.settings import Settings
from tests.pages.conftest import PretendedRuns

KEY = "open-sesame-and-stay"
LESSON = "one-busy-gpu"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path, busy_limit_s=2.0)
    yield opened
    opened.close()


@pytest.fixture
def classroom(store: Store) -> Classroom:
    return Classroom(store)


@pytest.fixture
def runs(tmp_path: Path) -> PretendedRuns:
    return PretendedRuns(tmp_path / "runs")


@pytest.fixture
def instructors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Instructors:
    made = Instructors(Settings(data_dir=tmp_path, instructor_key=KEY, instructors="ada@example.org"))
    monkeypatch.setattr(instructor, "_instructors", made)
    return made


@pytest.fixture
def make_app(classroom: Classroom, runs: PretendedRuns, instructors: Instructors, tmp_path: Path) -> Callable[..., Starlette]:
    """`make_app(participants_limit=3)`: the routes with these settings; `app.state.classes` are they."""

    def make(**settings: object) -> Starlette:
        values = Settings(data_dir=tmp_path, **settings)  # type: ignore[arg-type]
        classes = ClassRoutes(values, classroom=lambda: classroom, runs=lambda: runs)  # type: ignore[arg-type,return-value]
        app = Starlette(routes=[*live_routes(runs, by_class=classes.feed.on), *classes.routes()])  # type: ignore[arg-type]
        app.state.classes = classes
        return app

    return make


@pytest.fixture
def app(make_app: Callable[..., Starlette]) -> Starlette:
    return make_app()


@pytest.fixture
def browser(app: Starlette) -> Iterator[Callable[..., TestClient]]:
    """`browser()`: a browser without cookies, at one address; `browser(at="10.0.0.7")`: at another one. All in one event loop."""
    with ExitStack() as stack:
        first = stack.enter_context(TestClient(app, client=("10.0.0.1", 1), follow_redirects=False))

        def make(at: str = "10.0.0.1", app: Starlette = app) -> TestClient:
            client = TestClient(app, client=(at, 1), follow_redirects=False)
            client.portal = first.portal
            return client

        yield make


@pytest.fixture
def driver(browser: Callable[..., TestClient]) -> TestClient:
    """An instructor who is signed in."""
    client = browser()
    assert client.post("/instructor/sign-in", data={"key": KEY}).status_code == 303
    return client


@pytest.fixture
def lobby(classroom: Classroom) -> ClassState:
    """A class of one item, in its lobby."""
    return classroom.create([LESSON])
