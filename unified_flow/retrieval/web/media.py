"""What a reply says that it is, and what it is if it says nothing."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from unified_flow.retrieval.decode import UndecodableError, decode

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_JSON = frozenset({"application/json", "application/ld+json", "application/x-ndjson"})
_TEXT = frozenset(
    {"application/xml", "application/javascript", "application/yaml", "application/toml"}
)
_UNKNOWN = frozenset({"", "application/octet-stream", "binary/octet-stream", "*/*"})
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_OPENING = re.compile(
    rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE
)
# They decode as text in Python and are no charset of the web; some take quadratic time.
_NO_CHARSETS = frozenset(
    {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "utf-7"}
)


@dataclass(frozen=True)
class Media:
    """`type` is lower case, without parameters; `charset` as the header declares it."""

    type: str
    charset: str | None = None

    @property
    def is_html(self) -> bool:
        return self.type in _HTML

    @property
    def is_json(self) -> bool:
        return self.type in _JSON or self.type.endswith("+json")

    @property
    def is_text(self) -> bool:
        text = self.type.startswith("text/") or self.type in _TEXT or self.type.endswith("+xml")
        return (text or self.is_json) and not self.is_html


def media_of(content_type: str, body: bytes) -> Media:
    kind = content_type.partition(";")[0].strip().lower()
    declared = _CHARSET.search(content_type)
    charset = declared[1] if declared else None
    if kind in _UNKNOWN:
        kind = _sniffed(body)
    return Media(kind, charset)


def _sniffed(body: bytes) -> str:
    if _OPENING.match(body[:1024]):
        return "text/html"
    if body.startswith(b"%PDF-"):
        return "application/pdf"
    return "application/octet-stream" if b"\0" in body[:1024] else "text/plain"


def decoded(body: bytes, charset: str | None) -> str:
    """As browsers do: the mark at the beginning, the header, what the page says, UTF-8.

    Raises UndecodableError, whose message is the reason, for what is no text.
    """
    if charset is not None and not body.startswith((codecs.BOM_UTF8, b"\xff\xfe", b"\xfe\xff")):
        try:
            known = codecs.lookup(charset).name
            wide = known.startswith(("utf-16", "utf-32"))
            if known not in _NO_CHARSETS and (wide or b"\0" not in body[:1024]):
                # The web's ISO-8859-1 is Windows' superset of it.
                name = "cp1252" if known in ("iso8859-1", "ascii") else known
                return body.decode(name, "replace").replace("\r\n", "\n").replace("\r", "\n")
        except LookupError:
            pass  # a charset that nobody knows says nothing
    try:
        return decode(body).text
    except UndecodableError:
        if b"\0" in body:
            raise
        return body.decode("utf-8", "replace")
