"""Rules from a file: what `rules list --json` prints, or plain lines."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from unified_flow.errors import InputError
from unified_flow.guardrails.rules import UserRules, sorted_out

MAX_BYTES = 32 * 1024 * 1024
HINT = "a line a rule, or JSON as `unified-flow rules list --json` prints it"


def read_rules(file: Path, user_id: str) -> list[UserRules]:
    """The rules in `file`. Of plain lines, one of a single word is a keyword, else a phrase; they
    are `user_id`'s, as is JSON that names no user. Raises InputError, and OSError as it comes."""
    if file.stat().st_size > MAX_BYTES:
        raise InputError(f"{file} is larger than {MAX_BYTES:,} bytes", field="file", hint=HINT)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InputError(f"{file} is no UTF-8 text", field="file", hint=HINT) from exc
    if text.lstrip()[:1] in ("{", "["):
        return _of_json(text, file, user_id)
    lines = [line.strip() for line in text.splitlines()]
    rules = [line for line in lines if line and not line.startswith("# ")]
    if not rules:
        return []
    return [UserRules.model_validate({"user_id": user_id, **sorted_out(rules)})]


def _of_json(text: str, file: Path, user_id: str) -> list[UserRules]:
    try:
        read = json.loads(text)
        rows = read.get("rules", [read]) if isinstance(read, dict) else read
        return [UserRules.model_validate({"user_id": user_id, **row}) for row in rows]
    except (ValidationError, TypeError, ValueError, AttributeError) as exc:
        why = exc.errors()[0]["msg"] if isinstance(exc, ValidationError) else str(exc)
        raise InputError(f"{file} holds no rules: {why}", field="file", hint=HINT) from exc
