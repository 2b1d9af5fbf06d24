"""Nothing unredacted leaves the turn: strictly for operators, leniently for the person who asked.

`redact` takes any value and gives back plain JSON data: secrets replaced by key and by form, sizes
bounded, cycles and foreign objects made harmless. `redact_text` does the same for one string.
`redact_for_asker` masks in an answer only what is a secret whatever stands around it. All are
idempotent. Whatever exceeds a limit is replaced, never passed through. The rules are loaded when
there is something to redact.
"""

from __future__ import annotations

import sys
from typing import Any

from interventions.secrets.bounds import Bounds, printable
from interventions.secrets.bounds import redact_text as redact_text


def redact_for_asker(text: str) -> str:
    """What a person's own documents say, whole: `password=...` and `csrf.txt:12` are text, and only
    issued tokens, JSON web tokens and private keys are masked."""
    from interventions.secrets.rules import mask_issued

    return mask_issued(printable(text))


OF_THE_QUEUE = Bounds()
# For what was in memory as JSON already and must stay whole: only Python's recursion bounds it.
_ALL = sys.maxsize // 2
WHOLE = Bounds(depth=100, items=_ALL, nodes=_ALL, text=_ALL, total_text=_ALL)


def redact(value: Any, bounds: Bounds = OF_THE_QUEUE) -> Any:
    """Plain JSON data for any value, with secrets replaced at every depth."""
    from interventions.secrets.structure import Redaction

    return Redaction(bounds).visit(value, 0)
