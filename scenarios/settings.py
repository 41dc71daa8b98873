"""The settings of a Shardlab server, read from environment variables with the prefix SHARDLAB_.

Owns names, defaults and limits. Must not read anything but the environment.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from scenarios.faults import fault_line

PREFIX = "SHARDLAB_"
PROJECT_ROOT = Path(__file__).resolve().parent.parent


class Settings(BaseModel):
    """One field per environment variable: `data_dir` is SHARDLAB_DATA_DIR and so on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_dir: Path = PROJECT_ROOT / "data"
    """Folder of the run records and the store."""
    live_runs: int = Field(default=max(1, (os.cpu_count() or 2) // 2), ge=1, le=64)
    """Runs computed at the same time; the rest queue."""
    queue_limit: int = Field(default=50, ge=1, le=10_000)
    """Runs that may wait; a request beyond it is refused with a message."""
    run_limit_s: float = Field(default=120.0, gt=0, le=86_400)
    """Wall-clock limit of one run."""
    collective_limit_s: float = Field(default=20.0, gt=0, le=3_600)
    """Wall-clock limit of one collective."""
    runs_kept: int = Field(default=200, ge=10, le=100_000)
    """Records kept on disk; older ones are removed, except the newest good one of each experiment's default config."""
    viewers_limit: int = Field(default=4_000, ge=1, le=100_000)
    """Open live feeds, all viewers together."""
    viewers_per_client_limit: int = Field(default=2_000, ge=1, le=100_000)
    """Open live feeds of one network address. A class often shares one."""
    collect_token: str = Field(default="", repr=False)
    """Secret by which ranks on a cluster post their samples to `/collect/RUN`, at least 16 characters; without one nothing is collected."""
    database_url: str = Field(default="", repr=False)
    """PostgreSQL database that holds the store instead of a file in the data folder: `postgresql://USER:PASSWORD@HOST:PORT/NAME`."""
    lessons_dir: Path | None = None
    """Folder with lessons of your own, shown after the built-in ones."""
    measure_at_start: bool = True
    """Run each experiment once in the background of a fresh server, so that recordings and the evidence tables are there at once."""
    preview: bool = False
    """Show unfinished lessons, their faults and every stage to everybody: for writing lessons, set by `python -m lessons preview`."""
    instructor_key: str = Field(default="", repr=False)
    """What an instructor signs in with, at least 12 characters; without one the server makes one, keeps it and prints it."""
    instructors: str = ""
    """E-mail addresses, separated by commas, of those who are instructors when signed in by OpenID Connect."""
    public_url: str = ""
    """Where phones reach this server, for the QR code of a class: `http://192.168.1.20:8501`; without it the address of the console."""
    participants_limit: int = Field(default=1_000, ge=1, le=10_000)
    """Participants of one class."""
    joins_per_client_limit: int = Field(default=500, ge=1, le=10_000)
    """Participants of one class from one network address. A class often shares one."""

    @field_validator("lessons_dir", mode="before")
    @classmethod
    def _no_folder(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("instructor_key")
    @classmethod
    def _hard_to_guess(cls, value: str) -> str:
        if value and not re.fullmatch(r"[!-~]{12,256}", value):
            raise ValueError("must be 12 to 256 visible characters without spaces")
        return value

    @field_validator("instructors")
    @classmethod
    def _addresses(cls, value: str) -> str:
        found = [part.strip().casefold() for part in value.split(",") if part.strip()]
        if not all(re.fullmatch(r"[^\s@]{1,64}@[^\s@]{1,255}", part) for part in found):
            raise ValueError("must be e-mail addresses, separated by commas")
        return ",".join(found)

    @field_validator("public_url")
    @classmethod
    def _address(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[!-~]{1,200}", value):
            raise ValueError("must begin with http:// or https:// and hold no spaces")
        return value.rstrip("/")

    @field_validator("collect_token")
    @classmethod
    def _long_enough(cls, value: str) -> str:
        if value and not re.fullmatch(r"[!-~]{16,256}", value):
            raise ValueError("must be 16 to 256 visible characters without spaces")
        return value

    @field_validator("database_url")
    @classmethod
    def _postgresql(cls, value: str) -> str:
        if value and not re.fullmatch(r"postgres(ql)?://[!-~]{1,2000}", value):
            raise ValueError("must begin with postgresql:// and hold no spaces")
        return re.sub(r"^postgres://", "postgresql://", value)


SECRETS = ("collect_token", "database_url", "instructor_key")
"""Never printed, not even where they are refused."""


def load_settings(environ: dict[str, str] | None = None) -> Settings:
    """Read the settings from `environ` (default: os.environ).

    Raises ValueError naming the variable, its value and what is allowed.
    """
    env = dict(os.environ) if environ is None else environ
    values = {name: env[PREFIX + name.upper()] for name in Settings.model_fields if PREFIX + name.upper() in env}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        name, rest = fault_line(error, Settings).split("=", 1)
        if name in SECRETS:
            rest = f"(not shown): {rest.rpartition(': ')[2]}"
        raise ValueError(f"{PREFIX}{name.upper()}={rest}") from None
