"""`unified-flow index --watch`: the index kept in step with the files until Ctrl-C."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from interventions.cli.terminal import note, say
from unified_flow.errors import UnifiedFlowError

if TYPE_CHECKING:
    from unified_flow.retrieval.documents import Documents
    from unified_flow.retrieval.index_update import IndexReport

QUIET_MS = 300  # without a further change, then it is indexed
LONGEST_MS = 3_000  # that a stream of changes can put it off
LOOK_MS = 500  # between looks at single files, and at whether a folder was replaced
POLL_MS = 1_000  # where the system watches no more folders
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
    sys.stdout.flush()  # of the first update, before what is said from here on
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
    """Once after every burst of changes in a root, and when one has come, gone or been replaced.

    Folders are watched. A file is looked at: editors put another file in its place, so that its
    folder would have to be watched, with all that lies below.
    """

    def counts(_: object, path: str) -> bool:
        return concerns(path, roots, private)

    means = _Means()
    while True:
        folders = [root for root in roots if root.is_dir()]
        before = [_look(root) for root in roots]
        sure = False
        try:
            for found in _watched(folders, counts, means):
                now = [_look(root) for root in roots]
                if found or now != before or not sure:
                    yield None
                sure = True  # what changed before this look has been indexed as well
                if _folders(now) != _folders(before):
                    break
                before = now
        except PermissionError:
            if means.passes_over_closed:
                raise
            means = replace(means, passes_over_closed=True)
        except FileNotFoundError:
            continue  # a folder went between the look at it and its watch
        except OSError:
            if means.polls:
                raise
            means = replace(means, polls=True)
            note(f"{_now()} the system watches no more folders: they are looked at every second")
            note("  hint: raise fs.inotify.max_user_watches and max_user_instances (sysctl)")


@dataclass(frozen=True)
class _Means:
    """`passes_over_closed` comes second: with it, watchfiles also says nothing of a system that
    watches no more."""

    polls: bool = False
    passes_over_closed: bool = False


def _watched(
    folders: list[Path], counts: Callable[[object, str], bool], means: _Means
) -> Iterator[Collection[object]]:
    """What changed, or nothing if nothing did for LOOK_MS. Raises PermissionError for a folder that
    is closed, OSError where the system watches no more."""
    from watchfiles import watch
    from watchfiles._rust_notify import WatchfilesRustInternalError

    try:
        yield from watch(
            *folders,
            watch_filter=counts,
            debounce=LONGEST_MS,
            step=QUIET_MS,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            raise_interrupt=True,
            force_polling=means.polls or None,
            poll_delay_ms=POLL_MS,
            ignore_permission_denied=means.passes_over_closed,
        )
    except WatchfilesRustInternalError as exc:
        raise OSError(str(exc)) from exc


def concerns(path: str, roots: list[Path], private: list[Path]) -> bool:
    """Is what changed a root or below one?"""
    if any(_is_within(path, folder) for folder in private) or is_noise(Path(path), roots):
        return False
    return any(_is_within(path, root) for root in roots)


def _is_within(path: str, folder: Path) -> bool:
    return f"{path}/".startswith(f"{folder}/")


@dataclass(frozen=True)
class _Look:
    """Which folder a root is, or which state of a file."""

    is_folder: bool
    identity: tuple[int, ...]


def _look(root: Path) -> _Look | None:
    try:
        status = root.stat()
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return _Look(True, (status.st_dev, status.st_ino))
    return _Look(False, (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size))


def _folders(looks: list[_Look | None]) -> list[_Look | None]:
    return [look if look is not None and look.is_folder else None for look in looks]


def is_noise(path: Path, roots: Collection[Path]) -> bool:
    """Whether it lies in such a folder; one that holds a root is none."""
    below = [path.relative_to(folder) for folder in roots if path.is_relative_to(folder)]
    return bool(below) and all(not NOISY.isdisjoint(part.parts[:-1]) for part in below)


def _now() -> str:
    return f"{datetime.now():%H:%M:%S}"
