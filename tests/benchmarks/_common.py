"""What every benchmark shares: `--json`, one way to print, and the project on the import path.

Import this before anything from `tests` or the app: benchmarks are run as files, `python tests/benchmarks/NAME.py --json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


def arguments(doc: str | None, **options: int | float | bool) -> argparse.Namespace:
    """`--json` and one option per keyword, of the kind of its default, e.g. `arguments(__doc__, rounds=3, share=0.5, kill=False)`."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one line of JSON and nothing else")
    for name, default in options.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(default), default=default, help=f"default {default}")
    return parser.parse_args()


def report(name: str, figures: dict[str, Any], *, as_json: bool) -> None:
    """Print the figures: one JSON line, or one figure a line."""
    figures = {"benchmark": name, **figures, "cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    if as_json:
        print(json.dumps(figures))
        return
    width = max(map(len, figures))
    for key, value in figures.items():
        print(f"{key:<{width}}  {value:.3f}" if isinstance(value, float) else f"{key:<{width}}  {value}")
