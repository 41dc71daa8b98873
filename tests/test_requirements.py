"""requirements.txt is exactly what the app imports: nothing missing, nothing left over, everything pinned."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable
from importlib.metadata import metadata, packages_distributions
from pathlib import Path

from tests.test_layering import ROOMS, imports, sources

ROOT = Path(__file__).resolve().parents[1]
LOCAL = {*ROOMS, "app", "tests"}


FOR_TESTS = ("requirements-dev.txt", "requirements-dev-bare.txt")

SERVER = {"httptools", "uvloop"}
"""What uvicorn takes by itself where it is installed."""
ACCOUNTS = {"authlib", "httpx"}
"""What Streamlit takes where signing in by OpenID Connect is set up."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required(name: str = "requirements.txt") -> dict[str, str]:
    """Distribution -> pinned version."""
    lines = [line.split("#")[0].split(";")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    pins = [line.split("==") for line in lines if line and not line.startswith("-r ")]
    return {canonical(pin[0].split("[")[0]): pin[1] if len(pin) == 2 else "" for pin in pins}


def imported(paths: Iterable[Path]) -> dict[str, str]:
    """Distribution -> one of `paths` that imports it, for every third-party import in them."""
    providers = packages_distributions()
    found: dict[str, str] = {}
    for path in paths:
        for _, module in imports(ROOT / path):
            top = module.split(".")[0]
            if top and top not in LOCAL and not (ROOT / f"tests/benchmarks/{top}.py").exists() and top not in sys.stdlib_module_names:
                found[canonical(providers.get(top, [top])[0])] = str(path)
    return found


def test_every_import_is_required() -> None:
    assert {name: path for name, path in imported(sources(ROOT)).items() if name not in required()} == {}


def test_every_requirement_is_imported() -> None:
    assert set(required()) - set(imported(sources(ROOT))) - SERVER - ACCOUNTS == set()


def test_what_streamlit_signs_in_with_is_required() -> None:
    extra = [line for line in metadata("streamlit").get_all("Requires-Dist") or [] if 'extra == "auth"' in line]
    assert {canonical(re.split(r"[^\w.-]", line)[0]) for line in extra} == ACCOUNTS <= set(required())


def test_every_import_of_the_tests_is_required() -> None:
    everything = required() | required(FOR_TESTS[0]) | required(FOR_TESTS[1])
    tests = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py")]
    assert {name: path for name, path in imported(tests).items() if name not in everything} == {}


def test_an_import_that_is_not_required_would_be_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("import json\nimport altair\nimport unheard_of\nfrom scenarios import runs\n")
    assert set(imported([planted])) - set(required()) == {"altair", "unheard-of"}


def test_what_a_bare_requirement_needs_comes_with_the_others() -> None:
    """Those that are installed without their dependencies import all the same."""
    importlib.import_module("hta.trace_analysis")
    assert set(required(FOR_TESTS[1])) == {"holistictraceanalysis"}


def test_every_requirement_is_pinned() -> None:
    pins = required() | required(FOR_TESTS[0]) | required(FOR_TESTS[1])
    assert len(pins) > 12
    assert {name for name, version in pins.items() if not re.fullmatch(r"[\w.]+", version)} == set()
