"""The encoding of a file, and its bytes as text, or the reason why they are none."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from unified_flow.lib.sandbox import UnusableError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(rb"(?:charset|encoding|coding)[=:]\s*[\"']?([\w.-]+)")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_CONTROLS_ALLOWED = 0.01  # of the characters: terminal output and form feeds are text
_HIGH_ALLOWED = 0.3  # of the bytes: Latin text has fewer, other scripts more


@dataclass(frozen=True)
class DecodedText:
    """`guessed` says that nothing in the file names the encoding. Lines end with \\n."""

    text: str
    encoding: str
    guessed: bool = False


def decode(data: bytes) -> DecodedText:
    """Raises UnusableError for what is no text."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _accepted(_strict(data[len(mark) :], encoding), encoding)
    if b"\0" in data:
        raise UnusableError("binary")
    try:
        return _accepted(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as exc:
        broken = exc
    if declared := _declared(data):
        return _accepted(_strict(data, declared), declared)
    _refuse_unless_latin(data, broken)
    return _accepted(_strict(data, "cp1252"), "cp1252", guessed=True)


def _strict(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise UnusableError(f"not valid {encoding} at byte {exc.start}") from exc


def _accepted(text: str, encoding: str, guessed: bool = False) -> DecodedText:
    controls = len(_CONTROL.findall(text))
    if controls > max(1, len(text) * _CONTROLS_ALLOWED) or "\0" in text:
        raise UnusableError("binary")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return DecodedText(text, encoding, guessed)


def _declared(data: bytes) -> str | None:
    match = _DECLARED.search(data[:1024])
    if match is None:
        return None
    try:
        name = codecs.lookup(match[1].decode("ascii", "replace")).name
    except LookupError:
        return None
    # The head of a file that claims UTF-8 and is not says nothing; codecs like rot13 are no text.
    return name if name != "utf-8" and codecs.lookup(name)._is_text_encoding else None


def _refuse_unless_latin(data: bytes, broken: UnicodeDecodeError) -> None:
    lenient = data.decode("utf-8", "replace")
    wrong = lenient.count("\ufffd")
    right = sum(character > "\x7f" for character in lenient) - wrong
    if right >= wrong:
        raise UnusableError(f"not valid UTF-8 at byte {broken.start}")
    high = sum(byte > 0x7F for byte in data)
    if high > len(data) * _HIGH_ALLOWED:
        raise UnusableError("text of an unknown encoding, or binary")
