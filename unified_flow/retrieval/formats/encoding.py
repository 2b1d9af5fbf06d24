"""The bytes of a file, unpacked, and as text: its encoding, or the reason why it has none."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
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
_WESTERN = "cp1252"
# Those that are told apart: Cyrillic, Japanese, Chinese, and UTF-16 without a mark.
_NARROW = (_WESTERN, "cp1251", "koi8_r", "cp932", "euc_jp", "gb18030")
_WIDE = ("utf_16_le", "utf_16_be")
# Where text of two bytes a letter ends a word or a line.
_LINE = re.compile(rb"(?s).{16}(?:[ \n]\0|\0[ \n])")
_FLAWLESS = 0.05  # of charset-normalizer's measure of disorder, 0 to 1
_HEAD = 4096  # bytes: what is binary shows it early
_HIGH_ALLOWED = 0.3  # of the bytes: Latin text has fewer, other scripts more


@dataclass(frozen=True)
class DecodedText:
    """`guessed` says that nothing in the file names the encoding. Lines end with \\n."""

    text: str
    encoding: str
    guessed: bool = False


def is_packed(path: str) -> bool:
    """Whether the file is compressed, as manual pages are."""
    return path.endswith(".gz")


def unpacked(data: bytes, max_bytes: int, *, packed: bool = True) -> bytes:
    """The data, unpacked if it is `packed` (gzip). Raises UnusableError for what is broken, and for
    more than `max_bytes` before or after: a bomb unpacks to a thousand times its size."""
    if packed and len(data) <= max_bytes:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                data = file.read(max_bytes + 1)
        except (OSError, EOFError, zlib.error) as exc:
            raise UnusableError(f"broken: {exc}") from exc
    if len(data) > max_bytes:
        raise UnusableError(f"larger than {max_bytes / 1024 / 1024:g} MiB")
    return data


def decode(data: bytes) -> DecodedText:
    """Raises UnusableError for what is no text."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _accepted(_strict(data[len(mark) :], encoding), encoding)
    if b"\0" in data[:_HEAD]:
        wide = _recognised(data, _WIDE)
        if wide is None or not _LINE.search(data):
            raise UnusableError("binary")
        return _accepted(_strict(data, wide), wide, guessed=True)
    try:
        return _accepted(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as exc:
        broken = exc
    if declared := _declared(data):
        return _accepted(_strict(data, declared), declared)
    lenient = data.decode("utf-8", "replace")
    wrong = lenient.count("\ufffd")
    if sum(character > "\x7f" for character in lenient) >= 2 * wrong:
        raise UnusableError(f"not valid UTF-8 at byte {broken.start}")
    encoding = _recognised(data, _NARROW) or _WESTERN
    if encoding == _WESTERN and sum(byte > 0x7F for byte in data) > len(data) * _HIGH_ALLOWED:
        raise UnusableError("text of an unknown encoding, or binary")
    return _accepted(_strict(data, encoding), encoding, guessed=True)


def _recognised(data: bytes, among: tuple[str, ...]) -> str | None:
    """The encoding whose text is nearly flawless, and more so or more like a language than in any
    other."""
    from charset_normalizer import from_bytes  # 30 ms, and most files are UTF-8

    matches = from_bytes(data, cp_isolation=list(among))
    found = [(each.chaos, -each.coherence, each.encoding) for each in matches]
    best, *others = sorted(found) or [(1.0, 0.0, "")]
    if best[0] > _FLAWLESS or any(each[:2] == best[:2] for each in others):
        return None
    return codecs.lookup(best[2]).name


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
