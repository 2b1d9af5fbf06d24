"""Secrets inside values: by the key or the item before them, and in every text at any depth."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from enum import Enum
from pathlib import PurePath
from typing import Any

from interventions.secrets.bounds import CUT_MARGIN, MAX_TEXT, Bounds, redact_text
from interventions.secrets.forms import is_placeholder, is_sentence, scrub
from interventions.secrets.names import NameKind, hides, name_kind
from interventions.secrets.rules import MASK, words

_LONGEST_NAME = 200
_LARGEST = 10**18  # a larger integer is written as text
# What may be a name in a list, before its value: no sentence.
_A_NAME = re.compile(r"[\w.\-:]{1,100}(?: [\w.\-:]{1,100})?\Z")
_NAME_FIELDS, _VALUE_FIELDS = words("name_fields"), words("value_fields")
_KEY_PARTS, _SECRET_PARTS = words("key_parts"), words("secret_parts")


class Redaction:
    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._nodes_left = bounds.nodes
        self._text_left = bounds.total_text
        self._open: set[int] = set()

    def visit(self, value: Any, depth: int) -> Any:
        self._nodes_left -= 1
        if self._nodes_left < 0:
            return "[redacted: too many values]"
        try:
            return self._visit(value, depth)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a foreign object's own code may raise anything
            return f"<{type(value).__name__}: reading it raised {type(error).__name__}>"

    def _visit(self, value: Any, depth: int) -> Any:
        if value is None or value is True or value is False:
            return value
        if isinstance(value, Enum):
            return self.visit(value.value, depth)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            return int(value) if abs(value) < _LARGEST else self._text(_number_text(value))
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
        if depth >= self._bounds.depth:
            return "[redacted: too deep]"
        self._open.add(id(value))
        try:
            if isinstance(value, Mapping):
                return self._mapping(value, depth)
            names = getattr(value, "_fields", None) if isinstance(value, tuple) else None
            if isinstance(names, tuple) and len(names) == len(value):
                return self._mapping(dict(zip(names, value, strict=True)), depth)
            if isinstance(value, list | tuple | set | frozenset):
                return self._sequence(value, depth)
            return self._object(value, depth)
        finally:
            self._open.discard(id(value))

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        named = _named(value)
        for number, (key, item) in enumerate(value.items()):
            if number >= self._bounds.items:
                clean["[...]"] = f"[{len(value) - self._bounds.items} more items]"
                break
            written = _key_text(key)
            kind = name_kind(written)
            if kind is NameKind.PLAIN and written.lower() in _VALUE_FIELDS:
                kind = named
            is_part = "kty" in value and key in _KEY_PARTS
            if is_part or (key in _SECRET_PARTS and value.get("kind") == "Secret"):
                kind = NameKind.SECRET
            clean[self._text(written, _LONGEST_NAME)] = self._shown(kind, item, depth)
        return clean

    def _shown(self, kind: NameKind, item: Any, depth: int) -> Any:
        """The item, masked if its name says that it is a secret."""
        is_plain = kind is NameKind.PLAIN or (
            kind is not NameKind.SECRET and _is_measure(kind, item)
        )
        return self.visit(item, depth + 1) if is_plain or _is_said(item) else _mask(item)

    def _sequence(self, value: Any, depth: int) -> list[Any]:
        items = sorted(value, key=_safe_repr) if isinstance(value, set | frozenset) else value
        clean: list[Any] = []
        before: Any = None
        pair = len(items) == 2 and not isinstance(value, set | frozenset)
        most = self._bounds.items
        in_key = False
        for item in items[:most]:
            kind = _kind_of_item(before) if pair and clean else NameKind.PLAIN
            in_key = _is_line_of_key(item, in_key and not _ends_key(before))
            secret = in_key or (bool(clean) and _is_argument(items[: len(clean)], item))
            clean.append(MASK if secret else self._shown(kind, item, depth))
            before = item
        if len(items) > most:
            clean.append(f"[{len(items) - most} more items]")
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
        if size <= MAX_TEXT + CUT_MARGIN:
            with suppress(UnicodeDecodeError):
                return self._text(bytes(value).decode("utf-8"))
        return f"[{size} bytes]"

    def _text(self, text: str, limit: int | None = None) -> str:
        if self._text_left <= 0:
            return "[redacted: too much text]"
        most = self._bounds.text if limit is None else limit
        clean = redact_text(text, min(most, self._text_left))
        self._text_left -= len(clean)
        return clean


def _mask(value: Any) -> Any:
    """An empty or absent secret is worth knowing and tells nothing."""
    empty = value is None or value is True or value is False or (type(value) is str and not value)
    return value if empty else MASK


def _is_line_of_key(item: Any, in_key: bool) -> bool:
    """A private key as a list of its lines; a header of it has a colon and a space."""
    if not isinstance(item, str | bytes):
        return False
    line = _key_text(item).strip()
    begins = line.startswith("-----BEGIN ") and "PRIVATE" in line
    return begins or (in_key and (_ends_key(item) or " " not in line or ": " in line))


def _ends_key(item: Any) -> bool:
    return "-----END " in _key_text(item)


def _is_said(item: Any) -> bool:
    """What a form says of its field, `["This field is required."]`, or `${API_KEY}`."""
    texts = item if isinstance(item, list) else [item]
    return bool(texts) and all(
        isinstance(text, str) and (is_sentence(text) or is_placeholder(text)) for text in texts
    )


def _key_text(key: Any) -> str:
    """A key as text; headers come as bytes."""
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, Enum):
        return key.value if isinstance(key.value, str) else key.name
    if isinstance(key, bytes | bytearray):
        return bytes(key[: 4 * _LONGEST_NAME]).decode("utf-8", "replace")
    return _safe_repr(key)


def _kind_of_item(item: Any) -> NameKind:
    if not isinstance(item, str | bytes | bytearray | Enum) or isinstance(item, int):
        return NameKind.PLAIN
    written = _key_text(item)
    return name_kind(written) if _A_NAME.match(written) else NameKind.PLAIN


def _is_argument(before: Any, item: Any) -> bool:
    """A command line in a list: after `--token`, after mysql's `-p`, or after `password=`."""
    words = [*before[:1], *before[1:][-1:], item]
    if not all(isinstance(word, str | bytes | bytearray) for word in words):
        return False
    *said, given = (_key_text(word)[-_LONGEST_NAME:] for word in words)
    if given.startswith("--") or not (
        said[-1][:1] == "-" or said[-1][-1:] == "=" or given[:1] == "-"
    ):
        return False
    line = f"{' '.join(said)} "
    return scrub(line) == line and not scrub(line + given).endswith(given)


def _named(value: Mapping[Any, Any]) -> NameKind:
    """The kind of the name in a record such as `{"name": "password", "value": ...}`."""
    if not 2 <= len(value) <= 20:
        return NameKind.PLAIN
    for key, item in value.items():
        if isinstance(key, str | bytes) and _key_text(key).lower() in _NAME_FIELDS:
            kind = _kind_of_item(item[-1] if isinstance(item, list | tuple) and item else item)
            if kind is not NameKind.PLAIN:
                return kind
    return NameKind.PLAIN


def _is_measure(kind: NameKind, value: Any) -> bool:
    if value is None or isinstance(value, bool | int | float):
        return not isinstance(value, int) or abs(value) < _LARGEST
    if isinstance(value, str):
        return value == MASK or not hides(kind, value.strip())
    if kind is NameKind.MEASURE:
        return isinstance(value, Mapping | list | tuple)
    if isinstance(value, Mapping):
        return all(_is_measure(kind, item) for item in value.values())
    return isinstance(value, list | tuple) and all(_is_measure(kind, item) for item in value)


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a foreign object's own code may raise anything
        return f"<{type(value).__name__}: repr raised {type(error).__name__}>"


def _number_text(value: int) -> str:
    return f"[integer of {value.bit_length()} bits]" if value.bit_length() > 4000 else str(value)
