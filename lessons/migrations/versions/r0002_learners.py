"""Learners, what they answered, their mystery runs and their cards; attempts belong to a learner, those of before to nobody."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def _learner() -> sa.Column[int]:
    return sa.Column("learner_id", sa.Integer, sa.ForeignKey("learners.id", ondelete="CASCADE"), nullable=False)


def upgrade() -> None:
    op.create_table(
        "learners",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("created_s", sa.Float, nullable=False),
    )
    op.create_table("dead_tokens", sa.Column("token_hash", sa.String(64), primary_key=True))
    _attempts()
    op.create_table(
        "judgements",
        sa.Column("id", sa.Integer, primary_key=True),
        _learner(),
        sa.Column("at_s", sa.Float, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("ref", sa.String, nullable=False),
        sa.Column("try_no", sa.Integer, nullable=False),
        sa.Column("lesson_id", sa.String, nullable=True),
        sa.Column("cause", sa.String, nullable=False),
        sa.Column("taken_for", sa.String, nullable=False),
        sa.Column("correct", sa.Boolean, nullable=False),
        sa.Column("certainty", sa.String, nullable=True),
        sa.Column("marks", sa.Float, nullable=False),
        sa.Column("seen", sa.Boolean, nullable=False),
        sa.Column("figure", sa.String, nullable=True),
        sa.Column("figure_told", sa.Boolean, nullable=True),
        sa.UniqueConstraint("ref", "try_no", name="uq_judgements_once"),
    )
    op.create_index("ix_judgements_learner", "judgements", ["learner_id", "at_s"])
    op.create_table(
        "mysteries",
        sa.Column("token", sa.String, primary_key=True),
        _learner(),
        sa.Column("stage", sa.String, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("cause", sa.String, nullable=False),
        sa.Column("config", sa.JSON, nullable=False),
        sa.Column("setting", sa.String(64), nullable=False),
        sa.Column("candidates", sa.JSON, nullable=False),
        sa.Column("review", sa.Boolean, nullable=False),
        sa.Column("costs", sa.Boolean, nullable=False),
        sa.Column("run_id", sa.String, nullable=True),
        sa.Column("answer", sa.String, nullable=True),
        sa.Column("certainty", sa.String, nullable=True),
        sa.Column("figure", sa.String, nullable=True),
        sa.Column("created_s", sa.Float, nullable=False),
        sa.Column("changed_s", sa.Float, nullable=False),
        sa.UniqueConstraint("learner_id", "setting", name="uq_mysteries_never_twice"),
    )
    op.create_table(
        "cards",
        _learner(),
        sa.Column("cause", sa.String, nullable=False),
        sa.Column("card", sa.JSON, nullable=False),
        sa.Column("due_s", sa.Float, nullable=False),
        sa.Column("last_form", sa.String, nullable=False),
        sa.Column("asked_s", sa.Float, nullable=False),
        sa.UniqueConstraint("learner_id", "cause", name="uq_cards_one_per_cause"),
    )


def _attempts() -> None:
    # As text: SQLite takes a reference only together with its column, and Alembic would leave out the deletion.
    op.execute("ALTER TABLE attempts ADD COLUMN learner_id INTEGER REFERENCES learners (id) ON DELETE CASCADE")
    op.add_column("attempts", sa.Column("kind", sa.String, nullable=False, server_default="lesson"))
    op.add_column("attempts", sa.Column("seed", sa.BigInteger, nullable=True))
    op.add_column("attempts", sa.Column("wording", sa.Integer, nullable=True))
    op.add_column("attempts", sa.Column("costs", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_index("ix_attempts_learner", "attempts", ["learner_id", "lesson_id"])
