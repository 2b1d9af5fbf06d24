"""Files of questions and rules that a person wrote: read as text, refused with what is wrong."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from unified_flow.errors import InputError


def read_text(path: Path, field: str) -> str:
    """Raises InputError for what cannot be read as UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise InputError(f"{path} cannot be read: {reason}", field=field) from exc


def first_mistake(exc: ValidationError) -> str:
    """What is wrong first, and where."""
    first = exc.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "JSON"
    empty = first["type"] == "string_pattern_mismatch"
    return f"{where}: {'is empty' if empty else first['msg'].lower()}"
