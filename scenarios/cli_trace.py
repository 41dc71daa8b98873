"""`--trace`: where a run's trace goes, as one file for Perfetto or as a folder with one file a rank for HolisticTraceAnalysis.

Owns which of the two is meant and what is refused before anything runs. Must not know the trace's format.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from scenarios.analysis.trace import trace_lines, write_rank_traces

TRACE_HELP = "write a Chrome trace, for Perfetto; into a folder (or a path that ends in /): one file a GPU, for HolisticTraceAnalysis"


@dataclass(frozen=True, kw_only=True)
class TraceTarget:
    path: Path
    per_rank: bool

    @classmethod
    def parse(cls, text: str) -> TraceTarget:
        """Raises ValueError, in one line, for what could not be written when the run is over."""
        path = Path(text)
        per_rank = text.endswith("/") or path.is_dir()
        if per_rank and path.exists() and not path.is_dir():
            raise ValueError(f"trace={text!r}: must be a folder, or a file without / at the end")
        if not path.parent.is_dir():
            raise ValueError(f"trace={text!r}: must be a file or a folder in a folder that exists")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise ValueError(f"trace={text!r}: must be a {'folder' if per_rank else 'file'} that may be written")
        return cls(path=path, per_rank=per_rank)

    def write(self, run_dir: Path) -> None:
        """Raises ValueError where it cannot be written after all."""
        try:
            if self.per_rank:
                write_rank_traces(run_dir, self.path)
                return
            with self.path.open("w") as file:
                file.writelines(trace_lines(run_dir))
        except OSError as error:
            raise ValueError(f"trace={str(self.path)!r}: {error.strerror or error}") from None
