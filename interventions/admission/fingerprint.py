"""Which failures are the same failure.

A hash of phase, tool, qualified exception type, normalised message and the innermost in-app
`module:function`. No line number: an edit above the line must not make it another failure.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FP_VERSION = 1

_TABLE = Path(__file__).with_name("normal_forms.toml").read_text(encoding="utf-8")
_NORMAL_FORMS = [(name, re.compile(form)) for name, form in tomllib.loads(_TABLE).items()]


def normalise(message: str) -> str:
    """The message without what differs from one occurrence to the next."""
    text = message[:4000]
    for name, form in _NORMAL_FORMS:
        text = form.sub(f"<{name}>", text)
    return " ".join(text.split())


def fingerprint(failure: Mapping[str, Any]) -> str:
    """Of the fields of an entry, redacted."""
    parts = (
        str(FP_VERSION),
        failure["phase"],
        failure["tool"] or "",
        failure["exception_type"] or failure["error_type"],
        normalise(failure["error_message"]),
        failure["culprit"] or "",
    )
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
