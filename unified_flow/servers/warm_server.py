"""A server that one command keeps warm for the others: `unified-flow model serve`.

It notes its address and key in `shared_state/local_model.json`, readable by its user alone, and
holds a lock on that file as long as it lives; a note that nobody holds counts for nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from interventions.home import open_private
from unified_flow.errors import ConfigError
from unified_flow.servers.llama_server import Address

_NOTE = "local_model.json"


@contextmanager
def serving(state: Path, path: Path, start: Callable[[], Address]) -> Iterator[Address]:
    """What `start` gives, which others find while this lasts.

    Raises ConfigError if another one is served, before it starts anything: two would need twice
    the memory.
    """
    descriptor = open_private(state / _NOTE, os.O_RDWR)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise ConfigError(
                f"a model is being served for {state.parent} already", hint="end that one first"
            ) from exc
        os.ftruncate(descriptor, 0)  # of one that was killed
        address = start()
        note = {"path": str(path), "url": address.url, "key": address.key}
        os.write(descriptor, json.dumps(note).encode())
        try:
            yield address
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def warm_address(state: Path, path: Path) -> Address | None:
    """The server that is kept warm for this very file, if there is one."""
    try:
        with (state / _NOTE).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                note = json.load(file)
            else:
                return None
    except (OSError, ValueError):
        return None
    if note.get("path") != str(path):
        return None
    return Address(note["url"], note["key"])
