"""A failure as a small test: a redacted recording, and one assertion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from interventions.secrets.redaction import WHOLE, redact
from unified_flow.resume.replay.recording import RecordedReply, Recording
from unified_flow.resume.replay.replay import replay

WIDTH = 84

_TEMPLATE = Path(__file__).with_name("exported_test.txt")


class NotReplayableError(Exception):
    """There is no test that would pass once the cause is mended; `str` says why."""


def as_test(recording: Recording, intervention_id: str) -> str:
    """The text of a test module. Raises NotReplayableError, for a failure from outside too: a
    replay could only repeat it."""
    if recording.failed is None:
        raise NotReplayableError(
            f"turn {recording.turn_id} has not failed since it was resumed, or never has"
        )
    clean = _clean(recording)
    assert clean.failed is not None
    failed = clean.failed
    played = replay(clean)
    if played.from_outside:
        raise NotReplayableError(
            f"the failure came from outside the flow ({failed.error_type} in {failed.phase}), "
            "which a replay could only repeat"
        )
    now = played.failure
    same = now is not None and now.error_type == failed.error_type
    if not (same and played.fails_in(failed.phase)):
        what = f"{now.error_type} in {now.phase}: {now.message}" if now else "it passes"
        raise NotReplayableError(
            f"the failure of {failed.phase} cannot be repeated from what may be shown of it: {what}"
        )
    return _TEMPLATE.read_text(encoding="utf-8").format(
        title=_plain(f"{intervention_id}: {failed.phase}: {failed.error_type}"),
        phase=failed.phase,
        turn_id=recording.turn_id,
        recording=_literal(clean.model_dump_json(exclude_defaults=True)),
    )


def _clean(recording: Recording) -> Recording:
    """Without secrets. Whole: a test plays it, and what is cut plays otherwise. Raises
    NotReplayableError where nothing playable is left."""
    visits = tuple(
        visit.model_copy(update={"replies": list(map(_clean_reply, visit.replies))})
        for visit in recording.visits
    )
    plain = recording.model_copy(update={"visits": visits}).model_dump(mode="json")
    try:
        return Recording.model_validate(redact(plain, WHOLE))
    except ValidationError as exc:
        raise NotReplayableError("what may be shown of the recording cannot be played") from exc


def _clean_reply(reply: RecordedReply) -> RecordedReply:
    """As the calls that a model asks for are cleaned, so that they still are the same calls."""
    try:
        said = json.loads(reply.text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        return reply
    return reply.model_copy(update={"text": json.dumps(redact(said, WHOLE), ensure_ascii=False)})


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key with two values is a failure of its own, which must stay."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key with two values")
    return found


def _literal(text: str) -> str:
    """ASCII JSON as adjacent Python literals of a readable width."""
    plain = json.dumps(json.loads(text), separators=(",", ":"))
    parts = [plain[at : at + WIDTH] for at in range(0, len(plain), WIDTH)]
    return "\n".join(f"    {part!r}" for part in parts)


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isprintable() and c not in '"\\{}')[:90]
