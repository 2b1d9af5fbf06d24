"""The body of a reply: unpacked within a limit, its type and charset, its text.

Whatever is no plain text is read in the sandbox.
"""

from __future__ import annotations

import asyncio
import codecs
import mimetypes
import re
from dataclasses import dataclass

from unified_flow.errors import ConfigError, PageUnusableError
from unified_flow.lib.sandbox import SandboxLimits, Section, UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.retrieval.formats import html
from unified_flow.retrieval.formats.document import (
    converter_of,
    convertible,
    lines_of,
    missing_library,
)
from unified_flow.retrieval.formats.encoding import decode, unpacked
from unified_flow.retrieval.web.walls import shape_of

ACCEPT_ENCODING = "gzip"
NAME_A_SMALLER_PAGE = "Name a smaller page, or raise research.max_bytes."
MAX_TITLE = 500
MAX_CHARS = 16 * 1024 * 1024  # of the text of a page, whatever kind of page

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    f"application/{each}" for each in ("json", "x-ndjson", "xml", "javascript", "yaml", "toml")
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


def body_of(url: str, encoding: str, data: bytes, max_bytes: int) -> bytes:
    """Unpacked; `encoding` is the value of Content-Encoding. Raises PageUnusableError for what is
    broken, and for more than `max_bytes`."""
    packing = encoding.strip().lower()
    if packing not in ("", "identity", "gzip", "x-gzip"):
        raise PageUnusableError(
            f"{url} is packed as {encoding[:40]!r}, which nobody asked for", url=url
        )
    try:
        return unpacked(data, max_bytes, packed=packing.endswith("gzip"))
    except UnusableError as exc:
        raise PageUnusableError(f"{url} is {exc}", url=url, hint=NAME_A_SMALLER_PAGE) from exc


@dataclass(frozen=True)
class Media:
    """`type` is lower case, without parameters; `charset` as the header declares it."""

    type: str
    charset: str | None = None

    @property
    def is_html(self) -> bool:
        return self.type in _HTML

    @property
    def is_text(self) -> bool:
        text = self.type.startswith("text/") or self.type in _TEXT
        return (text or self.type.endswith(("+xml", "+json"))) and not self.is_html


def media_of(content_type: str, body: bytes) -> Media:
    """What the reply says that it is, and what it looks like if it says nothing."""
    kind = content_type.partition(";")[0].strip().lower()
    declared = _CHARSET.search(content_type)
    if kind in _UNKNOWN:
        if _OPENING.match(body[:1024]):
            kind = "text/html"
        elif body.startswith(b"%PDF-"):
            kind = "application/pdf"
        else:
            kind = "application/octet-stream" if b"\0" in body[:1024] else "text/plain"
    return Media(kind, declared[1] if declared else None)


def decoded(url: str, body: bytes, charset: str | None) -> str:
    """Decoded as browsers do, by the first mark, the header, what the page says, or as UTF-8.

    Raises PageUnusableError for what is no text.
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
    except UnusableError as exc:
        if b"\0" in body:
            raise PageUnusableError(f"{url} is no text: {exc}", url=url) from exc
        return body.decode("utf-8", "replace")


async def page_text(
    url: str, body: bytes, media: Media, page: str, timeout_s: float
) -> tuple[str, str]:
    """(title, text); `page` is the decoded body of HTML. Raises PageUnusableError, and ConfigError
    for a document that needs an extra."""
    title = ""
    if media.is_html:
        title, body = shape_of(page).title[:MAX_TITLE], page.encode("utf-8", "replace")
    if media.is_text:
        text = decoded(url, body, media.charset)
    else:
        sections = await _converted(_converter_of(url, media), url, body, timeout_s)
        text = "\n".join(lines_of(sections))
    if len(text) > MAX_CHARS:
        raise PageUnusableError(
            f"{url} cannot be read: it is more text than any page holds", url=url
        )
    if not text.strip():
        raise PageUnusableError(
            f"{url} holds no text",
            url=url,
            hint="It may need a browser that runs scripts: save the page from one.",
        )
    return title, text


def _converter_of(url: str, media: Media) -> str:
    if media.is_html:
        return f"{html.__name__}:html_sections"
    extension = mimetypes.guess_extension(media.type) or ""
    if not convertible(extension):
        raise PageUnusableError(f"{url} is {media.type[:80]}, which holds no text", url=url)
    if reason := missing_library(extension):
        raise ConfigError(f"{url} cannot be read: {reason}", hint=reason.rpartition(": ")[2])
    return converter_of(extension)


async def _converted(function: str, url: str, body: bytes, timeout_s: float) -> list[Section]:
    converter = Converter(SandboxLimits(timeout_s))

    def convert() -> list[Section]:
        with converter:
            return converter.convert(function, body)

    try:
        return await in_daemon_thread(convert)
    except UnusableError as exc:
        raise PageUnusableError(f"{url} cannot be read: {exc}", url=url) from exc
    except asyncio.CancelledError:
        converter.kill()
        raise
