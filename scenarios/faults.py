"""One line for a value that cannot be used: the field, the value, and what is allowed.

Owns the wording that the command line, links, pages and settings share. Must not know what the fields mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError


def one_of(value: str, allowed: Mapping[str, object]) -> str:
    """`value` itself; raises ValueError with all that is allowed where it is none of it."""
    if value not in allowed:
        raise ValueError(f"must be one of {', '.join(allowed)}")
    return value


def fault_line(error: ValidationError, model: type[BaseModel]) -> str:
    """The first fault of `error`, which `model` raised: `gpus='0': must be an integer from 1 to 8`."""
    fault = error.errors()[0]
    message = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return message
    field = str(fault["loc"][0])
    return f"{field}={str(fault['input'])[:60]!r}: {_range(model, field) or message}"


def _range(model: type[BaseModel], field: str) -> str | None:
    """The numbers that a field takes, both ends named; None for a field of another kind."""
    schema: dict[str, Any] = model.model_json_schema()["properties"].get(field, {})
    kinds = [schema, *schema.get("anyOf", [])]
    number = next((kind for kind in kinds if kind.get("type") in ("integer", "number") and "maximum" in kind), None)
    if number is None:
        return None
    least = f"from {number['minimum']:g} to" if "minimum" in number else f"above {number['exclusiveMinimum']:g} and at most"
    return f"must be {'an integer' if number['type'] == 'integer' else 'a number'} {least} {number['maximum']:.10g}"
