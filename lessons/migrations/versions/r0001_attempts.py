"""Attempts, as every version before migrations made them: a table that is there already is adopted with its rows."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    if sa.inspect(op.get_bind()).has_table("attempts"):
        return
    op.create_table(
        "attempts",
        sa.Column("token", sa.String, primary_key=True),
        sa.Column("lesson_id", sa.String, nullable=False),
        sa.Column("stage", sa.String, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("answers", sa.JSON, nullable=False),
        sa.Column("certainties", sa.JSON, nullable=False),
        sa.Column("predictions", sa.JSON, nullable=False),
        sa.Column("runs", sa.JSON, nullable=False),
        sa.Column("shown", sa.Boolean, nullable=False),
        sa.Column("created_s", sa.Float, nullable=False),
        sa.Column("changed_s", sa.Float, nullable=False),
    )
