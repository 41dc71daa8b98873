"""How people learn: lessons and their loader, grading, attempts, evidence and deep links.

This package uses `scenarios` and never `pages` or `streamlit`; it does not import torch.
"""

from lessons.loader import load_lessons
from lessons.model import (
    SILHOUETTES,
    Cause,
    Claim,
    Fault,
    Lesson,
    LessonSet,
    NoLessonsError,
    Option,
    OwnJobCheck,
    Prose,
    Racer,
    Silhouette,
    Source,
    Term,
)

__all__ = [
    "SILHOUETTES", "Cause", "Claim", "Fault", "Lesson", "LessonSet", "NoLessonsError", "Option", "OwnJobCheck", "Prose", "Racer",
    "Silhouette", "Source", "Term", "load_lessons",
]
