"""What may be asked: bad input is the caller's mistake, not a failure of the flow."""

from __future__ import annotations

import os
import re
import secrets
import unicodedata
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Literal, get_args

from pydantic import ValidationError

from interventions.times import utc_now
from unified_flow.errors import InputError
from unified_flow.turns.results import PriorTurn

MAX_QUESTION_CHARS = 2000
MAX_ID_CHARS = 200
ONE_QUESTION = "ask_"  # the beginning of a session's id where a question named none
# Controls but for \t, \n and \r, and halves of surrogate pairs.
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_FIRST_SURROGATE = 0xD800
Channel = Literal["chat", "comment"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and symbols by name, fillers all


def checked_question(message: str) -> str:
    """The question without surrounding space. Raises InputError, for what is no text too."""
    if not isinstance(message, str):
        raise InputError(f"the question must be text, not {type(message).__name__}")
    question = message.strip()
    if not any(map(_is_seen, question)):
        raise InputError(
            "the question must not be empty", reason="question_empty", hint="ask something"
        )
    if len(question) > MAX_QUESTION_CHARS:
        raise InputError(
            f"the question has {len(question):,} characters, {MAX_QUESTION_CHARS:,} at most",
            reason="question_too_long",
            hint="put the material into a document and ask about it with --docs",
        )
    _refuse_unreadable(question, "query", "the question")
    return question


def _is_seen(character: str) -> bool:
    """Whether the character is visible: a question without one looks empty."""
    kind = unicodedata.category(character)
    return kind not in _UNSEEN and kind != "Zs" and character not in _BLANK


def checked_id(value: str, field: str) -> str:
    """A session, user or request id: any short readable text. Raises InputError."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_ID_CHARS:
        raise InputError(f"{field} must be text of 1 to {MAX_ID_CHARS} characters", field=field)
    _refuse_unreadable(value, field, field)
    # A name with invisible characters is not the one it seems, and a line break would begin a new
    # line in a log.
    if not value.isprintable() and any(unicodedata.category(each) in _UNSEEN for each in value):
        raise InputError(f"{field} must not hold line breaks or unseen characters", field=field)
    return value


def checked_user(value: str) -> str:
    """The user whose rules hold: written in one way. Raises InputError."""
    return unicodedata.normalize("NFC", checked_id(value, "user_id")).strip()


def checked_history(turns: Sequence[PriorTurn]) -> list[PriorTurn]:
    """Dicts of the same keys count too; without a `turn_id`, their places. Raises InputError."""
    try:
        return [
            each
            if isinstance(each, PriorTurn)
            else PriorTurn.model_validate({"turn_id": place, **each})
            for place, each in enumerate(turns, 1)
        ]
    except (TypeError, ValueError) as exc:
        raise InputError(
            "history must be earlier turns, each with a question and an answer", field="history"
        ) from exc


def checked_channel(value: str | None) -> Channel | None:
    """Where the message comes from, which a user's rules may switch off; None if unknown. Raises
    InputError for any other name, which no rule would match."""
    known = next((each for each in CHANNELS if each == value), None)
    if value is not None and known is None:
        raise InputError(
            f"channel must be {' or '.join(CHANNELS)}, not {value!r}"[:MAX_ID_CHARS],
            field="channel",
            reason="field_wrong",
            hint="leave it out if it is neither",
        )
    return known


def _refuse_unreadable(text: str, field: str, what: str) -> None:
    if found := _UNREADABLE.search(text):
        code = ord(found[0])
        name = "half a surrogate pair" if code >= _FIRST_SURROGATE else "a control character"
        raise InputError(
            f"{what} holds {name} (U+{code:04X}) at character {found.start() + 1}",
            field=field,
            reason="question_unreadable" if field == "query" else "field_wrong",
            hint="binary data cannot be asked; send text in UTF-8",
        )


def new_request_id() -> str:
    """`2026-01-04-1f9c0a3e5b7d`: the date, so that a log is quickly found, and chance."""
    return f"{utc_now().date()}-{secrets.token_hex(6)}"


def new_session_id(beginning: str = "session_") -> str:
    return f"{beginning}{secrets.token_hex(6)}"


def read_text(path: Path, field: str, most: int | None = None) -> str:
    """The text of the file; of standard input for `-`. Raises InputError for what cannot be read as
    UTF-8, and for more than `most` characters."""
    is_stdin = path == Path("-")
    name = "standard input" if is_stdin else path
    try:
        # Standard input may be a socket, which /dev/stdin cannot open.
        source = os.fdopen(os.dup(0), "rb") if is_stdin else path.open("rb")
        with TextIOWrapper(source, "utf-8-sig") as file:
            text = file.read(None if most is None else most + 1)
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise InputError(f"{name} cannot be read: {reason}", field=field) from exc
    if most is not None and len(text) > most:
        raise InputError(
            f"{name} holds more than {most:,} characters; that is no question",
            field=field,
            hint="put the material into a document and ask about it with --docs",
        )
    return text


def first_mistake(exc: ValidationError) -> str:
    """What is wrong first, and where."""
    first = exc.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "JSON"
    empty = first["type"] == "string_pattern_mismatch"
    return f"{where}: {'is empty' if empty else first['msg'].lower()}"
