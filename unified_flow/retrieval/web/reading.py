"""The bytes of a reply to its title and text; whatever is no plain text is read in the sandbox."""

from __future__ import annotations

import asyncio
import mimetypes
from importlib.util import find_spec

from unified_flow.errors import ConfigError, PageUnusableError
from unified_flow.lib.sandbox import Part, SandboxLimits, UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.retrieval.converters import convertible, lines_of, missing, module_of
from unified_flow.retrieval.decode import UndecodableError
from unified_flow.retrieval.web import INSTALL, MAX_CHARS, FetchPolicy, html_to_markdown, json_text
from unified_flow.retrieval.web.media import Media, decoded

MAX_TITLE = 500


def html_of(url: str, body: bytes, media: Media) -> str:
    """The reply if it is HTML, else "". Raises PageUnusableError."""
    return _decoded(url, body, media) if media.is_html else ""


async def read(
    url: str, body: bytes, media: Media, page: str, policy: FetchPolicy
) -> tuple[str, str]:
    """(title, text). Raises PageUnusableError, and ConfigError without the extra."""
    if media.is_html:
        if find_spec("markdownify") is None:
            raise ConfigError("web pages need an extra", hint=INSTALL)
        title, text = await _laid_out(html_to_markdown.__name__, url, page, policy)
    elif media.is_json:
        title, text = await _laid_out(json_text.__name__, url, _decoded(url, body, media), policy)
    elif media.is_text:
        title, text = "", _decoded(url, body, media)
    else:
        found = await _converted(_module_of(url, media), url, body, policy)
        title, text = "", "\n".join(lines_of(found))
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


def _decoded(url: str, body: bytes, media: Media) -> str:
    try:
        return decoded(body, media.charset)
    except UndecodableError as exc:
        raise PageUnusableError(f"{url} is no text: {exc}", url=url) from exc


def _module_of(url: str, media: Media) -> str:
    extension = mimetypes.guess_extension(media.type) or ""
    if not convertible(extension):
        raise PageUnusableError(f"{url} is {media.type[:80]}, which holds no text", url=url)
    if reason := missing(extension):
        raise ConfigError(f"{url} cannot be read: {reason}", hint=reason.rpartition(": ")[2])
    return module_of(extension)


async def _laid_out(module: str, url: str, page: str, policy: FetchPolicy) -> tuple[str, str]:
    [part] = await _converted(module, url, page.encode("utf-8", "replace"), policy)
    return " ".join(part.trail)[:MAX_TITLE], "\n".join(part.lines)


async def _converted(module: str, url: str, body: bytes, policy: FetchPolicy) -> list[Part]:
    converter = Converter(SandboxLimits(policy.timeout_s, policy.memory_bytes))

    def convert() -> list[Part]:
        with converter:
            return converter.convert(module, body)

    try:
        return await in_daemon_thread(convert)
    except UnusableError as exc:
        raise PageUnusableError(f"{url} cannot be read: {exc}", url=url) from exc
    except asyncio.CancelledError:
        converter.kill()
        raise
