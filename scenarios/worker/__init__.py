"""The side that trains: what a catalog script is given, and what it does to virtual clocks while it runs. Imports torch."""

from scenarios.worker.by_hand import run_by_hand
from scenarios.worker.job import Job

__all__ = ["Job", "run_by_hand"]
