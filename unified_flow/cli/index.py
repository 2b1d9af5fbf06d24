"""`unified-flow index`: read documents into the search index, once or as they change."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer

from interventions.cli.terminal import note, say
from unified_flow.cli import completion, options
from unified_flow.cli.documents import note_unasked
from unified_flow.cli.terminal import counted, progress_bar, say_object
from unified_flow.errors import UnifiedFlowError

if TYPE_CHECKING:
    from unified_flow.retrieval.documents import Documents
    from unified_flow.retrieval.index_update import IndexReport

SKIPPED_SHOWN = 20
LOOK_S = 1.0  # between two looks at what is watched
LONGEST_S = 10.0  # if a look takes long: it gets a fifth of the time


def index(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files, folders and web pages [default: as configured].",
            click_type=click.Path(path_type=str),
            autocompletion=completion.paths,
        ),
    ] = None,
    collection: options.CollectionName = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Read everything again, whatever is there.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and index what changes, until Ctrl-C.")
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete these from the index; the documents stay.")
    ] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Index documents: only what is new or changed is read. What git ignores is left out.

    PDF, Word, PowerPoint and Excel need an extra: pip install 'unified-flow[documents]'.

    \b
    unified-flow index docs/ README.md
    unified-flow index manuals/ --collection manuals
    unified-flow index https://example.org/page    fetched now, and again each time
    unified-flow index docs/ --watch
    unified-flow index --rebuild docs/
    unified-flow index --delete old-docs/          as where they are gone for good

    What an index holds: unified-flow collections show

    Exit codes: 0 done, also a watch that Ctrl-C ended, 1 the index is broken, 2 usage or
    configuration, 130 interrupted.
    """
    from unified_flow.retrieval.documents import open_documents

    if delete and (rebuild or watch):
        raise typer.BadParameter("--delete goes alone")
    if delete and not paths:
        raise typer.BadParameter("--delete needs the folders, files or pages to delete")
    documents = open_documents(home, None if delete else paths, collection)
    try:
        if delete:
            _delete(documents, paths or [], as_json)
            return
        with progress_bar("indexing", show=sys.stderr.isatty()) as progress:
            report = documents.refresh(progress, rebuild=rebuild, fetch_again=True)
        say_object(_of_report(report)) if as_json else _show(report)
        note_unasked(home, collection)
        if watch:
            _watch(documents, report, as_json)
    finally:
        documents.close()


def _delete(documents: Documents, paths: list[str], as_json: bool) -> None:
    removed = documents.index.forget(paths)
    if as_json:
        say_object({"removed": removed})
    else:
        say(f"{counted(removed, 'file')} deleted from the index; the documents are untouched")


def _of_report(report: IndexReport) -> dict[str, Any]:
    return asdict(report) | {
        "files": report.files,
        "skipped": [{"path": path, "reason": reason} for path, reason in report.skipped],
        "guessed": [{"path": path, "encoding": code} for path, code in report.guessed],
        "duration_ms": round(report.duration_ms, 1),
    }


def _show(report: IndexReport) -> None:
    say(
        f"{report.files} files, {report.chunks} chunks in {report.duration_ms:.0f} ms "
        f"({report.added} new, {report.changed} changed, {report.removed} removed)"
    )
    for path, encoding in report.guessed:
        say(f"  read as {encoding}: {path}")
    for path, reason in report.skipped[:SKIPPED_SHOWN]:
        say(f"  skipped: {path} ({reason})")
    if len(report.skipped) > SKIPPED_SHOWN:
        say(f"  … and {len(report.skipped) - SKIPPED_SHOWN} more (all with --json)")
    if any("not fetched" in reason for _, reason in report.skipped):
        note("a page that could not be fetched stays as it was, if it was there before")


def _watch(documents: Documents, report: IndexReport, as_json: bool) -> None:
    """Keep the index in step with the files until Ctrl-C. An update of unchanged files is cheap and
    misses nothing, so that is the look. A round that fails is reported, and the next one runs.

    `report` is that of the first update; what it skipped is not reported again.
    """
    roots = [root for root in documents.watched() if isinstance(root, Path)]
    if not roots:
        note("there is no folder to watch: web pages are fetched by each unified-flow index")
        return
    known = Reported(frozenset(report.skipped))
    sys.stdout.flush()  # the first update, before anything of the rounds
    note(f"watching {', '.join(str(root) for root in roots)}; Ctrl-C ends it")
    try:
        while True:
            started = time.monotonic()
            known = _round(documents, known, as_json)
            took = time.monotonic() - started
            time.sleep(min(max(LOOK_S, 4 * took), LONGEST_S))
    except KeyboardInterrupt:
        note("stopped watching; the index is up to date as of the last line")


@dataclass(frozen=True)
class Reported:
    """What the last round skipped, or why it failed: reported once, until it changes."""

    skipped: frozenset[tuple[str, str]]
    trouble: str | None = None


def _round(documents: Documents, known: Reported, as_json: bool) -> Reported:
    try:
        report = documents.refresh()
    except UnifiedFlowError as exc:
        trouble = f"{exc}" + (f" ({exc.hint})" if exc.hint else "")
        if trouble != known.trouble:
            note(f"{_clock_time()} not indexed: {trouble}")
        return replace(known, trouble=trouble)
    skipped = frozenset(report.skipped)
    new = skipped - known.skipped
    if not (report.added or report.changed or report.removed or new):
        return Reported(skipped)
    if as_json:
        say_object(_of_report(report))
    else:
        say(
            f"{_clock_time()} {report.added} new, {report.changed} changed, "
            f"{report.removed} removed in {report.duration_ms:.0f} ms; "
            f"{report.files} files, {report.chunks} chunks"
        )
        for path, reason in sorted(new):
            say(f"  skipped: {path} ({reason})")
    sys.stdout.flush()
    return Reported(skipped)


def _clock_time() -> str:
    return f"{datetime.now():%H:%M:%S}"
