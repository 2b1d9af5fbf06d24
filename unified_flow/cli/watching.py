"""`unified-flow index --watch`: the index kept in step with the files until Ctrl-C."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from interventions.cli.screen import note, say
from unified_flow.errors import UnifiedFlowError

if TYPE_CHECKING:
    from unified_flow.documents import Documents
    from unified_flow.retrieval.report import IndexReport

QUIET_MS = 300  # without a further change, then it is indexed
LONGEST_MS = 3_000  # that a stream of changes can put it off
LOOK_MS = 1_000  # between looks at whether a folder was replaced


def watch_documents(documents: Documents, report: IndexReport, as_json: bool) -> None:
    """Returns when it is interrupted. What goes wrong with a round is said, and the next one runs.

    `report` is that of the first update; what it skipped is not said again.
    """
    roots = [root for root in documents.watched() if isinstance(root, Path)]
    if not roots:
        note("there is no folder to watch: web pages are fetched by each unified-flow index")
        return
    said = frozenset(report.skipped)
    note(f"watching {', '.join(str(root) for root in roots)}; Ctrl-C ends it")
    try:
        for _ in _changes(roots, documents.private):
            said = _round(documents, said, as_json)
    except KeyboardInterrupt:
        note("stopped watching; the index is up to date as of the last line")


def _round(
    documents: Documents, said: frozenset[tuple[str, str]], as_json: bool
) -> frozenset[tuple[str, str]]:
    """One update; returns what it skipped."""
    try:
        report = documents.refresh()
    except UnifiedFlowError as exc:
        note(f"{_now()} not indexed: {exc}" + (f" ({exc.hint})" if exc.hint else ""))
        return said
    skipped = frozenset(report.skipped)
    if not (report.added or report.changed or report.removed or skipped - said):
        return skipped
    if as_json:
        from unified_flow.cli.index import of_report

        say(json.dumps(of_report(report), ensure_ascii=False))
    else:
        say(
            f"{_now()} {report.added} new, {report.changed} changed, {report.removed} removed "
            f"in {report.duration_ms:.0f} ms; {report.files} files, {report.chunks} chunks"
        )
        for path, reason in sorted(skipped - said):
            say(f"  skipped: {path} ({reason})")
    sys.stdout.flush()
    return skipped


def _changes(roots: list[Path], private: list[Path]) -> Iterator[None]:
    """Once after every burst of changes under the roots, and when a root is another folder now."""
    from watchfiles import watch

    def counts(_: object, path: str) -> bool:
        return concerns(path, roots, private)

    while True:
        places = [_place(root) for root in roots]
        # A file is watched through its folder: editors put another file in its place.
        targets = {root if root.is_dir() else _existing(root) for root in roots}
        sure = False
        for found in watch(
            *targets,
            watch_filter=counts,
            # Beside single files there is nothing to look into, and ~ may hold a million folders.
            recursive=not all(root.is_file() for root in roots),
            debounce=LONGEST_MS,
            step=QUIET_MS,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            raise_interrupt=True,
            ignore_permission_denied=True,
        ):
            moved = [_place(root) for root in roots] != places
            if found or moved or not sure:
                yield None
            sure = True  # what changed before this look has been indexed as well
            if moved:
                break


def concerns(path: str, roots: list[Path], private: list[Path]) -> bool:
    """Is what changed a root, below one, or a folder that a missing root would be in?"""
    name = f"{path}/"
    if any(name.startswith(f"{folder}/") for folder in private) or _is_noise(path):
        return False
    return any(name.startswith(f"{root}/") or f"{root}/".startswith(name) for root in roots)


def _place(root: Path) -> tuple[int, int] | None:
    """Which folder it is; a file is told by its folder."""
    try:
        status = (root if root.is_dir() else root.parent).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _existing(root: Path) -> Path:
    return next(folder for folder in root.parents if folder.is_dir())


def _is_noise(path: str) -> bool:
    return "/.git/" in path or "/__pycache__/" in path or "/node_modules/" in path


def _now() -> str:
    return f"{datetime.now():%H:%M:%S}"
