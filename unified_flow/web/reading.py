"""The bytes of a reply to its title and text. HTML and JSON are read in a process of their own."""

from __future__ import annotations

import asyncio
import json
import mimetypes
import os
import sys
from functools import partial
from importlib.util import find_spec

from unified_flow.errors import ConfigError
from unified_flow.retrieval.converters import Part, UnusableError, convertible, missing
from unified_flow.retrieval.converters.process import Bounds, Converter, lines_of
from unified_flow.retrieval.decode import UndecodableError
from unified_flow.tools.threads import in_daemon_thread
from unified_flow.web import INSTALL, MAX_CHARS, FetchPolicy
from unified_flow.web.errors import PageUnusableError
from unified_flow.web.media import Media, decoded

_OUT_OF_MEMORY = 3


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
        title, text = await _read_apart("html", url, page, policy)
    elif media.is_json:
        title, text = await _read_apart("json", url, _decoded(url, body, media), policy)
    elif media.is_text:
        title, text = "", _decoded(url, body, media)
    else:
        title, text = "", await _converted(url, body, media, policy)
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


async def _converted(url: str, body: bytes, media: Media, policy: FetchPolicy) -> str:
    extension = mimetypes.guess_extension(media.type) or ""
    if not convertible(extension):
        raise PageUnusableError(f"{url} is {media.type[:80]}, which holds no text", url=url)
    if reason := missing(extension):
        raise ConfigError(f"{url} cannot be read: {reason}", hint=reason.rpartition(": ")[2])
    bounds = Bounds(policy.timeout_s, policy.memory_bytes)
    try:
        parts = await in_daemon_thread(partial(_convert, extension, body, bounds))
    except UnusableError as exc:
        raise PageUnusableError(f"{url} cannot be read: {exc}", url=url) from exc
    return "\n".join(lines_of(parts))


def _convert(extension: str, body: bytes, bounds: Bounds) -> list[Part]:
    with Converter(bounds) as converter:
        return converter.convert(extension, body)


async def _read_apart(kind: str, url: str, page: str, policy: FetchPolicy) -> tuple[str, str]:
    # Nothing of the caller's environment but what Python needs to find this package.
    kept = {key: os.environ[key] for key in ("PYTHONPATH",) if key in os.environ}
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-B", "-m", "unified_flow.web.worker", kind,
        str(policy.memory_bytes), str(int(policy.timeout_s) + 2),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=kept,
        start_new_session=True,
    )  # fmt: skip
    try:
        answer, _ = await worker.communicate(page.encode("utf-8", "replace"))
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
    if worker.returncode == _OUT_OF_MEMORY:
        memory = policy.memory_bytes / 1024 / 1024
        raise PageUnusableError(
            f"{url} cannot be read: it took more than {memory:,.0f} MiB of memory", url=url
        )
    if worker.returncode != 0:
        raise PageUnusableError(
            f"{url} cannot be read: the reader ended on it (status {worker.returncode})", url=url
        )
    found = json.loads(answer)
    if "reason" in found:
        raise PageUnusableError(f"{url} cannot be read: {found['reason']}", url=url)
    return found["title"], found["text"]
