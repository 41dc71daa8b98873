"""Classes, who takes part, their votes, and what happened."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def _class() -> sa.Column[str]:
    return sa.Column("code", sa.String(6), sa.ForeignKey("classes.code", ondelete="CASCADE"), nullable=False)


def upgrade() -> None:
    op.create_table(
        "classes",
        sa.Column("code", sa.String(6), primary_key=True),
        sa.Column("title", sa.String, nullable=False),
        sa.Column("lesson_ids", sa.JSON, nullable=False),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("item_no", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("closes_s", sa.Float, nullable=True),
        sa.Column("scene", sa.JSON, nullable=False),
        sa.Column("created_s", sa.Float, nullable=False),
        sa.Column("changed_s", sa.Float, nullable=False),
    )
    op.create_table(
        "participants",
        sa.Column("id", sa.Integer, primary_key=True),
        _class(),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("nickname", sa.String, nullable=True),
        sa.Column("hidden", sa.Boolean, nullable=False),
        sa.Column("removed", sa.Boolean, nullable=False),
        sa.Column("changes", sa.Integer, nullable=False),
        sa.Column("joined_s", sa.Float, nullable=False),
        sa.UniqueConstraint("code", "token_hash", name="uq_participants_once"),
    )
    op.create_table(
        "votes",
        sa.Column("participant_id", sa.Integer, sa.ForeignKey("participants.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("item_no", sa.Integer, primary_key=True),
        sa.Column("round", sa.String, primary_key=True),
        _class(),
        sa.Column("choice", sa.String, nullable=False),
        sa.Column("changes", sa.Integer, nullable=False),
        sa.Column("first_s", sa.Float, nullable=False),
        sa.Column("at_s", sa.Float, nullable=False),
    )
    op.create_index("ix_votes_class", "votes", ["code"])
    op.create_table(
        "class_log",
        sa.Column("id", sa.Integer, primary_key=True),
        _class(),
        sa.Column("at_s", sa.Float, nullable=False),
        sa.Column("words", sa.String, nullable=False),
        sa.Column("tone", sa.String, nullable=False),
    )
    op.create_index("ix_class_log_class", "class_log", ["code", "id"])
