"""Alembic steps that bring a database up to date; `lessons.store.migrate` carries them out when a server starts."""
