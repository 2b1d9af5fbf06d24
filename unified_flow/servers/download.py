"""A model's file from an address into a folder: it goes on where it broke off, and is kept only if
its SHA-256 is the one that was named.

Only https is asked, and this machine; a redirect leads nowhere else. No key is ever sent.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

import httpx

from interventions.home import sync_folder
from interventions.storage.disk import remedy
from unified_flow.errors import InputError, UnifiedFlowError
from unified_flow.servers.connection_pool import is_loopback, trusted_context

Progress = Callable[[int, int], None]
"""Called with (bytes that are there, bytes in all)."""

REDIRECTS = 5
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0  # for the next bytes


class DownloadError(UnifiedFlowError):
    """The file could not be had, or is not the one that was named."""


@dataclass(frozen=True)
class ModelFile:
    """`fetched` is False for one that was there, and right."""

    path: Path
    bytes: int
    sha256: str
    fetched: bool


def fetch_model(url: str, sha256: str, folder: Path, progress: Progress | None = None) -> ModelFile:
    """Raises InputError for an address or a sum that is none and for another file of that name,
    DownloadError."""
    wanted = sha256.strip().lower().removeprefix("sha256:")
    if not re.fullmatch("[0-9a-f]{64}", wanted):
        raise InputError(f"{sha256!r} is no SHA-256: it has 64 hexadecimal digits", field="sha256")
    address = _parsed(url)
    target = folder / _file_name(address)
    if target.exists():
        if (found := file_sha256(target)) != wanted:
            raise InputError(
                f"{target} is there, and is another file: its SHA-256 is {found}",
                field="into",
                hint="Move or delete it, or name another folder with --into.",
            )
        return ModelFile(target, target.stat().st_size, wanted, fetched=False)
    part = target.with_name(f"{target.name}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                _complete(file, address, progress)
                keep_if_right(part, target, wanted)
            finally:
                file.flush()
                if not os.fstat(file.fileno()).st_size:
                    part.unlink(missing_ok=True)
    except BlockingIOError as exc:
        raise DownloadError(
            f"another process fetches {part}", hint="Wait until it is done."
        ) from exc
    except OSError as exc:
        there = part.stat().st_size if part.exists() else 0
        again = f"; the same command then goes on from {there:,} bytes" if there else ""
        raise DownloadError(
            f"{part} cannot be written: {exc.strerror or exc}",
            hint=f"{remedy(exc) or 'mend it'}{again}",
        ) from exc
    return ModelFile(target, target.stat().st_size, wanted, fetched=True)


def keep_if_right(part: Path, target: Path, sha256: str) -> None:
    """`part` becomes `target`, whole and on the disk, or is removed. Raises DownloadError."""
    if (found := file_sha256(part)) != sha256:
        part.unlink()
        raise DownloadError(
            f"refused: the SHA-256 of {target.name} is {found}, and should be {sha256}",
            hint="It is removed. Is the sum that of this very file, and the address too?",
        )
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)
    sync_folder(target.parent)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _complete(file: BinaryIO, url: httpx.URL, progress: Progress | None) -> None:
    """Adds what the file lacks; all of it where the server sends no part of a file."""
    there = file.tell()
    try:
        with _reply(url, there) as reply:
            begins = reply.headers.get("content-range", "").startswith(f"bytes {there}-")
            match reply.status_code:
                case HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    return  # it has all there is: its sum decides
                case HTTPStatus.OK:
                    there = 0
                    file.truncate(0)
                case HTTPStatus.PARTIAL_CONTENT if begins:
                    pass
                case status:
                    raise DownloadError(
                        f"{_shown(url)} cannot be fetched: {status} {reply.reason_phrase}".rstrip(),
                        hint="Is it the address of the file itself, and does it want no login?",
                    )
            total = there + int(reply.headers.get("content-length", 0))
            for piece in reply.iter_raw():
                file.write(piece)
                there += len(piece)
                if progress is not None:
                    progress(there, max(there, total))
            file.flush()
    except (httpx.RequestError, httpx.InvalidURL) as exc:
        raise DownloadError(
            f"{_shown(url)} cannot be fetched: {exc or type(exc).__name__}",
            hint=f"The same command goes on from {there:,} bytes."
            if there
            else "Is the address right, and the network there?",
        ) from exc


@contextmanager
def _reply(url: httpx.URL, there: int) -> Iterator[httpx.Response]:
    """The reply of the address where the redirects end."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "unified-flow"}
    if there:
        headers["Range"] = f"bytes={there}-"
    local = is_loopback(url.host)

    def check(request: httpx.Request) -> None:
        if not _is_allowed(request.url) or (is_loopback(request.url.host) and not local):
            raise DownloadError(
                f"{_shown(url)} redirects to {_shown(request.url)}, which is not followed",
                hint="Only https is, and not to this machine: name another address.",
            )

    with (
        httpx.Client(
            verify=trusted_context(),
            trust_env=not local,
            timeout=httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            follow_redirects=True,
            max_redirects=REDIRECTS,
            event_hooks={"request": [check]},
        ) as client,
        client.stream("GET", url, headers=headers) as reply,
    ):
        yield reply


def _parsed(url: str) -> httpx.URL:
    hint = (
        "Name an https address without a user name or a password; http is for this machine alone."
    )
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL as exc:
        raise InputError(f"{url!r} is no address: {exc}", field="url", hint=hint) from exc
    if not _is_allowed(found) or found.userinfo:
        raise InputError(f"{_shown(found)} is not fetched", field="url", hint=hint)
    return found


def _is_allowed(url: httpx.URL) -> bool:
    if url.scheme == "https":
        return bool(url.host)
    return url.scheme == "http" and is_loopback(url.host)


def _file_name(url: httpx.URL) -> str:
    name = unquote(url.path.rpartition("/")[2])
    if not name.strip(". ") or "/" in name or not name.isprintable():
        raise InputError(f"{_shown(url)} names no file", field="url")
    return name


def _shown(url: httpx.URL) -> str:
    """The URL without its query, which may hold a secret."""
    return str(url.copy_with(query=None, fragment=None, userinfo=b""))
