"""`unified-flow index --watch`: the index kept in step with the files until Ctrl-C."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
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
NOISY = frozenset({".git", "__pycache__", "node_modules"})  # folders of which nothing is indexed


def watch_documents(documents: Documents, report: IndexReport, as_json: bool) -> None:
    """Returns when it is interrupted. What goes wrong with a round is said, and the next one runs.

    `report` is that of the first update; what it skipped is not said again.
    """
    roots = [root for root in documents.watched() if isinstance(root, Path)]
    if not roots:
        note("there is no folder to watch: web pages are fetched by each unified-flow index")
        return
    said = Said(frozenset(report.skipped))
    note(f"watching {', '.join(str(root) for root in roots)}; Ctrl-C ends it")
    try:
        for _ in _changes(roots, documents.private):
            said = _round(documents, said, as_json)
    except KeyboardInterrupt:
        note("stopped watching; the index is up to date as of the last line")


@dataclass(frozen=True)
class Said:
    """What the last round skipped, or why there was none: said once, until it changes."""

    skipped: frozenset[tuple[str, str]]
    trouble: str | None = None


def _round(documents: Documents, said: Said, as_json: bool) -> Said:
    """One update."""
    try:
        report = documents.refresh()
    except UnifiedFlowError as exc:
        trouble = f"{exc}" + (f" ({exc.hint})" if exc.hint else "")
        if trouble != said.trouble:
            note(f"{_now()} not indexed: {trouble}")
        return replace(said, trouble=trouble)
    skipped = frozenset(report.skipped)
    new = skipped - said.skipped
    if not (report.added or report.changed or report.removed or new):
        return Said(skipped)
    if as_json:
        from unified_flow.cli.index import of_report

        say(json.dumps(of_report(report), ensure_ascii=False))
    else:
        say(
            f"{_now()} {report.added} new, {report.changed} changed, {report.removed} removed "
            f"in {report.duration_ms:.0f} ms; {report.files} files, {report.chunks} chunks"
        )
        for path, reason in sorted(new):
            say(f"  skipped: {path} ({reason})")
    sys.stdout.flush()
    return Said(skipped)


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
    if any(name.startswith(f"{folder}/") for folder in private) or is_noise(Path(path), roots):
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


def is_noise(path: Path, roots: Collection[Path]) -> bool:
    """Whether it lies in such a folder; one that holds a root is none."""
    below = [path.relative_to(folder) for folder in roots if path.is_relative_to(folder)]
    return bool(below) and all(not NOISY.isdisjoint(part.parts[:-1]) for part in below)


def _now() -> str:
    return f"{datetime.now():%H:%M:%S}"
