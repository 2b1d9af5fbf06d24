"""A failure as a small test: the turn's journal, redacted, and one assertion."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from interventions.secrets.redaction import WHOLE, redact
from unified_flow.resume.replay.replay import replay
from unified_flow.turns.events import AnyEvent
from unified_flow.turns.fold import JournalOrderError, fold

WIDTH = 84
# What a replay does not read: who asked and ran the turn, where, and what people said of it.
BLANK: dict[str, Any] = {
    "request_id": "",
    "session_id": "",
    "user_id": "",
    "config_digest": "",
    "runner": {"user": "", "host": "", "pid": 0},
    "by": "",
    "reason": "",
    "aside": "",
    "note": None,
    "hint": None,
    "cause": None,
    "asked_with": {},
    "environment": {},
    "changed": [],
    "retrieved": [],
}

_TEMPLATE = Path(__file__).with_name("exported_test.txt")
_JOURNAL: TypeAdapter[list[AnyEvent]] = TypeAdapter(list[AnyEvent])


class NotReplayableError(Exception):
    """There is no test that would pass once the cause is mended; `str` says why."""


def as_test(journal: Sequence[AnyEvent], intervention_id: str) -> str:
    """The text of a test module. Raises NotReplayableError, for a failure from outside too: a
    replay could only repeat it."""
    turn = fold(journal)
    failed = turn.failure
    if failed is None:
        raise NotReplayableError(
            f"turn {turn.turn_id} has not failed since it was resumed, or never has"
        )
    text = json.dumps(_clean(journal), separators=(",", ":"))
    try:
        now = replay(journal_of(text)).failure
    except (ValidationError, JournalOrderError) as exc:
        raise NotReplayableError("what may be shown of the journal cannot be played") from exc
    if now is not None and now.from_outside:
        raise NotReplayableError(
            f"the failure came from outside the flow ({failed.error_type} in {failed.phase}), "
            "which a replay could only repeat"
        )
    if now is None or now.error_type != failed.error_type:
        what = f"{now.error_type} in {now.phase}: {now.message}" if now else "it passes"
        raise NotReplayableError(
            f"the failure of {failed.phase} cannot be repeated from what may be shown of it: {what}"
        )
    return _TEMPLATE.read_text(encoding="utf-8").format(
        title=_plain(f"{intervention_id}: {failed.phase}: {failed.error_type}"),
        phase=failed.phase,
        turn_id=turn.turn_id,
        journal="\n".join(f"    {text[at : at + WIDTH]!r}" for at in range(0, len(text), WIDTH)),
    )


def journal_of(text: str) -> list[AnyEvent]:
    """The journal in an exported test."""
    return _JOURNAL.validate_python(json.loads(text))


def _clean(journal: Sequence[AnyEvent]) -> list[dict[str, Any]]:
    """The event without secrets, and without whose turn it is. Whole: a test plays it, and what is
    cut plays otherwise."""
    records = [event.model_dump(mode="json", exclude={"at"}) for event in journal]
    for record in records:
        record |= {name: blank for name, blank in BLANK.items() if name in record}
        if record["event"] == "model_called":
            record["reply"] = _clean_reply(record["reply"])
    cleaned: list[dict[str, Any]] = redact(records, WHOLE)
    return cleaned


def _clean_reply(reply: str) -> str:
    """As the calls that a model asks for are cleaned, so that they still are the same calls."""
    try:
        said = json.loads(reply, object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        return reply
    return json.dumps(redact(said, WHOLE), ensure_ascii=False)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key with two values is a failure of its own, which must stay."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key with two values")
    return found


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isprintable() and c not in '"\\{}')[:90]
