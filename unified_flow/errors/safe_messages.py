"""What a user of the flow reads when something fails; the texts are in `safe_messages.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

Language = Literal["en", "sv"]

_TEXTS: Any = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
MESSAGES: dict[Language, dict[str, str]] = _TEXTS


def safe_message(code: str, *, notified: bool, language: Language) -> str:
    """What a user reads of a failure with client code `code`; `notified`: a person was."""
    texts = MESSAGES[language]
    news = texts["notified"] if notified else texts["not_notified"]
    brief = texts["error"].format(message=texts[code])
    return f"{texts['halted']} {news}\n\n{brief}"
