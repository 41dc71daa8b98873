"""The symptom finder: from what somebody sees on a cluster to ranked causes, with what speaks for and against each.

    symptoms, faults = load_symptoms(CONTENT)
    rank(symptoms, {"busy": "only0", "memory": "even"})

Owns the content (symptoms.yaml), the ranking, and what recorded runs would answer. Must not know pages.
"""

from lessons.symptoms.content import SYMPTOMS_FILE, Command, Evidence, Question, SymptomCause, Symptoms, load_symptoms
from lessons.symptoms.observed import observed
from lessons.symptoms.ranking import Conflict, Ranked, Reason, conflict, likelihood, rank, tells_most

__all__ = [
    "SYMPTOMS_FILE", "Command", "Conflict", "Evidence", "Question", "Ranked", "Reason", "SymptomCause", "Symptoms", "conflict",
    "likelihood", "load_symptoms", "observed", "rank", "tells_most",
]
