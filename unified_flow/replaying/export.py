"""A failure as a small test: a redacted recording, and one assertion."""

from __future__ import annotations

import json
from typing import Any

from interventions.redaction import redact
from unified_flow.replaying.recording import Recording
from unified_flow.replaying.replay import replay

WIDTH = 84

TEMPLATE = '''"""{title}

Written by `interventions export --as pytest`. It plays what the models and tools answered then,
without network, and fails until {phase} can deal with it.
"""

from unified_flow.replaying.recording import Recording
from unified_flow.replaying.replay import replay

RECORDING = (
{recording}
)


def test_turn_{turn_id}_gets_past_{phase}():
    replayed = replay(Recording.model_validate_json(RECORDING))
    assert not replayed.fails_in({phase!r}), replayed.failure
'''


class NotReplayableError(Exception):
    """A replay could only repeat the failure, whatever is mended; `str` says why."""


def as_test(recording: Recording, intervention_id: str) -> str:
    """The text of a test module. Raises NotReplayableError."""
    failed = recording.failed
    if failed is None:
        raise NotReplayableError(
            f"turn {recording.turn_id} has not failed since it was resumed, or never has"
        )
    clean = Recording.model_validate(_redacted(recording.model_dump(mode="json")))
    played = replay(clean)
    if played.from_outside:
        raise NotReplayableError(
            f"the failure came from outside the flow ({failed.error_type} in {failed.phase}); "
            "a replay can only repeat it"
        )
    assert clean.failed is not None
    title = _plain(f"{intervention_id}: {failed.phase}: {failed.error_type}")
    return TEMPLATE.format(
        title=title,
        phase=failed.phase,
        turn_id=recording.turn_id,
        recording=_literal(clean.model_dump_json(exclude_defaults=True)),
    )


def _redacted(value: Any) -> Any:
    """Leaf by leaf: the limits of what the queue may hold are not a recording's."""
    if isinstance(value, dict):
        return {
            name: _redacted(item)
            if isinstance(item, dict | list)
            else redact({name: item}).popitem()[1]
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    return redact(value)


def _literal(text: str) -> str:
    """ASCII JSON as adjacent Python literals of a readable width."""
    plain = json.dumps(json.loads(text), separators=(",", ":"))
    parts = [plain[at : at + WIDTH] for at in range(0, len(plain), WIDTH)]
    return "\n".join(f"    {part!r}" for part in parts)


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isprintable() and c not in '"\\{}')[:90]
