"""The architecture, checked: pages -> lessons -> scenarios, where streamlit and torch may be imported, and how long a file may be."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("scenarios", "lessons", "pages")
MAY_NOT_IMPORT = {
    "scenarios": {"lessons", "pages", "app", "tests"},
    "lessons": {"pages", "app", "tests"},
    "pages": {"app", "tests"},
    "app.py": {"tests"},
}
TORCH = (
    "scenarios/launcher.py", "scenarios/supervisor.py", "scenarios/worker/*", "scenarios/catalog/*",
    "scenarios/costs/walk.py", "scenarios/costs/architectures.py",
)  # fmt: skip
NO_TORCH_AFTER_ALL = "scenarios/catalog/__init__.py"
MODULE_LINES = 400
EXPERIMENT_LINES = 60


def sources(root: Path) -> Iterator[Path]:
    """Every Python file of the app, relative to `root`; not the tests."""
    if (root / "app.py").exists():
        yield Path("app.py")
    for room in ROOMS:
        yield from sorted(path.relative_to(root) for path in (root / room).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, full module name) of every import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from a import b` may import the module a.b. A relative import stays in its package: "." marks it.
            prefix = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{prefix}.{alias.name}" if node.module else prefix + alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and _is_import_call(node) and isinstance(node.args[0], ast.Constant):
            yield node.lineno, str(node.args[0].value)


def _is_import_call(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("import_module", "__import__") and bool(node.args)


def backward_imports(root: Path) -> list[str]:
    return [
        f"{path}:{line} imports {name}"
        for path in sources(root)
        for line, name in imports(root / path)
        if name.split(".")[0] in MAY_NOT_IMPORT[path.parts[0]] or name.startswith("..")
    ]


def misplaced_streamlit(root: Path) -> list[str]:
    return [
        f"{path}:{line} imports {name}"
        for path in sources(root)
        if path.parts[0] not in ("app.py", "pages")
        for line, name in imports(root / path)
        if name.split(".")[0] == "streamlit"
    ]


def misplaced_torch(root: Path) -> list[str]:
    return [
        f"{path}:{line} imports {name}"
        for path in sources(root)
        if path.as_posix() == NO_TORCH_AFTER_ALL or not any(path.match(pattern) for pattern in TORCH)
        for line, name in imports(root / path)
        if name.split(".")[0] in ("torch", "torchvision")
    ]


def too_long(root: Path) -> list[str]:
    limits = dict.fromkeys(sources(root), MODULE_LINES)
    limits |= {path: EXPERIMENT_LINES for path in limits if path.match("scenarios/catalog/*") and path.name != "__init__.py"}
    counted = {path: len((root / path).read_text().splitlines()) for path in limits}
    return [f"{path} has {counted[path]} lines, {limit} are allowed" for path, limit in limits.items() if counted[path] > limit]


CHECKS = (backward_imports, misplaced_streamlit, misplaced_torch, too_long)


@pytest.mark.parametrize("check", CHECKS)
def test_the_app_keeps_the_rule(check) -> None:
    assert len(list(sources(ROOT))) > 30
    assert check(ROOT) == []


@pytest.mark.parametrize(
    ("check", "path", "text"),
    [
        (backward_imports, "scenarios/runs.py", "import lessons"),
        (backward_imports, "scenarios/runs.py", "from pages.components import lanes"),
        (backward_imports, "lessons/loader.py", "def load():\n    from pages import lesson"),
        (backward_imports, "lessons/loader.py", "import importlib\nimportlib.import_module('pages.lesson')"),
        (backward_imports, "lessons/loader.py", "from ..pages import lesson"),
        (backward_imports, "pages/lesson.py", "import app"),
        (backward_imports, "pages/lesson.py", "from tests.browser import checks"),
        (misplaced_streamlit, "scenarios/feed.py", "import streamlit as st"),
        (misplaced_streamlit, "lessons/store.py", "from streamlit.testing.v1 import AppTest"),
        (misplaced_torch, "app.py", "import torch"),
        (misplaced_torch, "scenarios/runs.py", "def lazily():\n    import torch.distributed as dist"),
        (misplaced_torch, "scenarios/catalog/__init__.py", "from torch import nn"),
        (misplaced_torch, "scenarios/costs/pricing.py", "import torch"),
        (misplaced_torch, "pages/lesson.py", "if True:\n    from torch.nn import functional"),
        (too_long, "pages/lesson.py", "x = 1\n" * 401),
        (too_long, "scenarios/catalog/sharded.py", "x = 1\n" * 61),
    ],
)
def test_a_planted_violation_is_found(check, path: str, text: str, tmp_path: Path) -> None:
    planted = tmp_path / path
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(text)
    assert len(check(tmp_path)) == 1
    assert check(tmp_path)[0].startswith(path)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("scenarios/worker/entry.py", "import torch\nfrom scenarios import record"),
        ("scenarios/catalog/sharded.py", "import torch\n" * 60),
        ("lessons/loader.py", "from scenarios.catalog import SCENARIOS\n" * 400),
        ("pages/lesson.py", "import streamlit as st\nimport lessons, scenarios\nfrom pages.components import lanes"),
        ("app.py", "import streamlit\nimport pages, lessons, scenarios"),
    ],
)
def test_what_is_allowed_passes(path: str, text: str, tmp_path: Path) -> None:
    allowed = tmp_path / path
    allowed.parent.mkdir(parents=True, exist_ok=True)
    allowed.write_text(text)
    assert [fault for check in CHECKS for fault in check(tmp_path)] == []


def web_modules() -> list[str]:
    """Every importable module of the web server's side: all but the files that may import torch and the scripts Streamlit runs."""
    navigation = ROOT / "pages/navigation.py"
    scripts = {Path("app.py"), Path("pages/navigation.py")}
    scripts |= {Path("pages", name) for name in re.findall(r'st\.Page\("(\w+\.py)"', navigation.read_text())}
    modules = []
    for path in sources(ROOT):
        worker_side = any(path.match(pattern) for pattern in TORCH) and path.as_posix() != NO_TORCH_AFTER_ALL
        if not worker_side and path not in scripts and path.name != "__main__.py":
            modules.append(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    return modules


def imported_with(modules: list[str]) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that imports `modules` and fails if torch came with them."""
    code = f"import {', '.join(modules)}, sys; sys.exit('torch came along' if 'torch' in sys.modules else 0)"
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_the_web_side_imports_without_torch() -> None:
    modules = web_modules()
    assert {"scenarios.runs", "scenarios.feed", "lessons"} <= set(modules)
    result = imported_with(modules)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_the_import_check_would_notice_torch() -> None:
    result = imported_with(["scenarios.config", "scenarios.supervisor"])
    assert result.returncode == 1
    assert "torch came along" in result.stderr
