"""The tables, as the migrations leave them; a test holds the two in step.

Owns names and types of columns, alike on SQLite and PostgreSQL. What they mean is said where they are used: `lessons.learners`,
`lessons.attempts`, `lessons.mystery`, `lessons.reviews`, `lessons.classroom`. Times are Unix seconds.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    false,
)

metadata = MetaData()


def _learner(*, nullable: bool = False) -> Column[int]:
    return Column("learner_id", Integer, ForeignKey("learners.id", ondelete="CASCADE"), nullable=nullable)


learners = Table(
    "learners", metadata,
    Column("id", Integer, primary_key=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("created_s", Float, nullable=False),
)

dead_tokens = Table(
    "dead_tokens", metadata,
    Column("token_hash", String(64), primary_key=True),
)

attempts = Table(
    "attempts", metadata,
    Column("token", String, primary_key=True),
    Column("lesson_id", String, nullable=False),
    Column("stage", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("answers", JSON, nullable=False),
    Column("certainties", JSON, nullable=False),
    Column("predictions", JSON, nullable=False),
    Column("runs", JSON, nullable=False),
    Column("shown", Boolean, nullable=False),
    Column("created_s", Float, nullable=False),
    Column("changed_s", Float, nullable=False),
    _learner(nullable=True),
    Column("kind", String, nullable=False, server_default="lesson"),
    Column("seed", BigInteger, nullable=True),
    Column("wording", Integer, nullable=True),
    Column("costs", Boolean, nullable=False, server_default=false()),
    Index("ix_attempts_learner", "learner_id", "lesson_id"),
)

judgements = Table(
    "judgements", metadata,
    Column("id", Integer, primary_key=True),
    _learner(),
    Column("at_s", Float, nullable=False),
    Column("kind", String, nullable=False),
    Column("ref", String, nullable=False),
    Column("try_no", Integer, nullable=False),
    Column("lesson_id", String, nullable=True),
    Column("cause", String, nullable=False),
    Column("taken_for", String, nullable=False),
    Column("correct", Boolean, nullable=False),
    Column("certainty", String, nullable=True),
    Column("marks", Float, nullable=False),
    Column("seen", Boolean, nullable=False),
    Column("figure", String, nullable=True),
    Column("figure_told", Boolean, nullable=True),
    UniqueConstraint("ref", "try_no", name="uq_judgements_once"),
    Index("ix_judgements_learner", "learner_id", "at_s"),
)

mysteries = Table(
    "mysteries", metadata,
    Column("token", String, primary_key=True),
    _learner(),
    Column("stage", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("cause", String, nullable=False),
    Column("config", JSON, nullable=False),
    Column("setting", String(64), nullable=False),
    Column("candidates", JSON, nullable=False),
    Column("review", Boolean, nullable=False),
    Column("costs", Boolean, nullable=False),
    Column("run_id", String, nullable=True),
    Column("answer", String, nullable=True),
    Column("certainty", String, nullable=True),
    Column("figure", String, nullable=True),
    Column("created_s", Float, nullable=False),
    Column("changed_s", Float, nullable=False),
    UniqueConstraint("learner_id", "setting", name="uq_mysteries_never_twice"),
)

cards = Table(
    "cards", metadata,
    _learner(),
    Column("cause", String, nullable=False),
    Column("card", JSON, nullable=False),
    Column("due_s", Float, nullable=False),
    Column("last_form", String, nullable=False),
    Column("asked_s", Float, nullable=False),
    UniqueConstraint("learner_id", "cause", name="uq_cards_one_per_cause"),
)


def _class() -> Column[str]:
    return Column("code", String(6), ForeignKey("classes.code", ondelete="CASCADE"), nullable=False)


classes = Table(
    "classes", metadata,
    Column("code", String(6), primary_key=True),
    Column("title", String, nullable=False),
    Column("lesson_ids", JSON, nullable=False),
    Column("plan", JSON, nullable=False),
    Column("state", String, nullable=False),
    Column("item_no", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("closes_s", Float, nullable=True),
    Column("scene", JSON, nullable=False),
    Column("created_s", Float, nullable=False),
    Column("changed_s", Float, nullable=False),
)

participants = Table(
    "participants", metadata,
    Column("id", Integer, primary_key=True),
    _class(),
    Column("token_hash", String(64), nullable=False),
    Column("nickname", String, nullable=True),
    Column("hidden", Boolean, nullable=False),
    Column("removed", Boolean, nullable=False),
    Column("changes", Integer, nullable=False),
    Column("joined_s", Float, nullable=False),
    UniqueConstraint("code", "token_hash", name="uq_participants_once"),
)

votes = Table(
    "votes", metadata,
    Column("participant_id", Integer, ForeignKey("participants.id", ondelete="CASCADE"), primary_key=True),
    Column("item_no", Integer, primary_key=True),
    Column("round", String, primary_key=True),
    _class(),
    Column("choice", String, nullable=False),
    Column("changes", Integer, nullable=False),
    Column("first_s", Float, nullable=False),
    Column("at_s", Float, nullable=False),
    Index("ix_votes_class", "code"),
)

class_log = Table(
    "class_log", metadata,
    Column("id", Integer, primary_key=True),
    _class(),
    Column("at_s", Float, nullable=False),
    Column("words", String, nullable=False),
    Column("tone", String, nullable=False),
    Index("ix_class_log_class", "code", "id"),
)
