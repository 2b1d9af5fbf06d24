"""Nothing unredacted leaves the turn.

`redact` takes any value and gives back plain JSON data: secrets replaced by key and by form, sizes
bounded, cycles and foreign objects made harmless. `redact_text` does the same for one string. Both
are idempotent. What is past a limit is replaced, never passed through.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from enum import Enum
from pathlib import PurePath
from typing import Any

from interventions.secret_forms import scrub
from interventions.secret_keys import is_secret_key

REDACTED = "[redacted]"
MAX_DEPTH = 10
MAX_ITEMS = 200
MAX_NODES = 4000
MAX_TEXT = 8_000
MAX_TOTAL_TEXT = 64_000
# What is read beyond the cut, so that a secret that lies across it is still recognised.
_CUT_MARGIN = 4_000


def redact_text(text: str, limit: int = MAX_TEXT) -> str:
    """The text with every secret form replaced, at most about `limit` characters of it."""
    total = len(text)
    clean = scrub(_printable(text[: limit + _CUT_MARGIN]), is_secret_key)
    if len(clean) <= limit and total <= limit + _CUT_MARGIN:
        return clean
    cut = clean[:limit]
    return f"{cut}[... {max(total - len(cut), 1)} more characters]"


def redact(value: Any) -> Any:
    """Plain JSON data for any value, with secrets replaced at every depth."""
    return _Walk().visit(value, 0)


class _Walk:
    def __init__(self) -> None:
        self._nodes_left = MAX_NODES
        self._text_left = MAX_TOTAL_TEXT
        self._open: set[int] = set()

    def visit(self, value: Any, depth: int) -> Any:
        self._nodes_left -= 1
        if self._nodes_left < 0:
            return "[redacted: too many values]"
        if value is None or value is True or value is False:
            return value
        if isinstance(value, Enum):
            return self.visit(value.value, depth)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            return int(value) if abs(value) < 10**18 else self._text(_number_text(value))
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(value)
        if isinstance(value, datetime | date | time):
            return value.isoformat()
        if isinstance(value, timedelta | PurePath):
            return self._text(str(value))
        return self._container(value, depth)

    def _container(self, value: Any, depth: int) -> Any:
        if id(value) in self._open:
            return "[cycle]"
        if depth >= MAX_DEPTH:
            return "[redacted: too deep]"
        self._open.add(id(value))
        try:
            if isinstance(value, Mapping):
                return self._mapping(value, depth)
            if isinstance(value, list | tuple | set | frozenset):
                return self._sequence(value, depth)
            return self._object(value, depth)
        except Exception as error:  # noqa: BLE001 - a foreign object's own code may raise anything
            return f"<{type(value).__name__}: reading it raised {type(error).__name__}>"
        finally:
            self._open.discard(id(value))

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for number, (key, item) in enumerate(value.items()):
            if number >= MAX_ITEMS:
                clean["[...]"] = f"[{len(value) - MAX_ITEMS} more items]"
                break
            name = self._text(key if isinstance(key, str) else _safe_repr(key), 200)
            secret = is_secret_key(key) if isinstance(key, str) else False
            clean[name] = _mask(item) if secret else self.visit(item, depth + 1)
        return clean

    def _sequence(self, value: Any, depth: int) -> list[Any]:
        items = sorted(value, key=_safe_repr) if isinstance(value, set | frozenset) else value
        clean = [self.visit(item, depth + 1) for item in items[:MAX_ITEMS]]
        if len(items) > MAX_ITEMS:
            clean.append(f"[{len(items) - MAX_ITEMS} more items]")
        return clean

    def _object(self, value: Any, depth: int) -> Any:
        dump = getattr(type(value), "model_dump", None)
        if dump is not None:
            return self._mapping(dump(value), depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            return self._mapping(fields, depth)
        return self._text(_safe_repr(value))

    def _bytes(self, value: bytes | bytearray | memoryview) -> str:
        size = value.nbytes if isinstance(value, memoryview) else len(value)
        head = bytes(value[: MAX_TEXT + _CUT_MARGIN])
        try:
            text = head.decode("utf-8")
        except UnicodeDecodeError:
            return f"[{size} bytes]"
        return self._text(text) if size <= len(head) else f"[{size} bytes]"

    def _text(self, text: str, limit: int = MAX_TEXT) -> str:
        if self._text_left <= 0:
            return "[redacted: too much text]"
        clean = redact_text(text, min(limit, self._text_left))
        self._text_left -= len(clean)
        return clean


def _mask(value: Any) -> Any:
    """An empty or absent secret is worth knowing and tells nothing."""
    return value if value is None or value == "" or isinstance(value, bool) else REDACTED


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - a foreign object's own code may raise anything
        return f"<{type(value).__name__}: repr raised {type(error).__name__}>"


def _number_text(value: int) -> str:
    return f"[integer of {value.bit_length()} bits]" if value.bit_length() > 4000 else str(value)


def _printable(text: str) -> str:
    """Lone surrogates and null bytes can be neither written as UTF-8 nor shown."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
