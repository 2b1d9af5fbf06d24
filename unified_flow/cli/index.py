"""`unified-flow index`: read documents into the search index."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer
from typer import Argument, Option

from interventions.cli.terminal import note, say
from interventions.home import find_home
from unified_flow.cli import options
from unified_flow.cli.documents import note_unasked
from unified_flow.cli.terminal import counted, held, progress_bar, say_object, say_result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from unified_flow.retrieval.index import Index
    from unified_flow.retrieval.index_writer import IndexReport

SKIPPED_SHOWN = 20


def index(
    paths: Annotated[
        list[str] | None,
        Argument(
            help="Files, folders and web pages [default: as configured].",
            click_type=click.Path(path_type=str),
        ),
    ] = None,
    docs: options.Docs = None,
    collection: options.CollectionName = None,
    rebuild: Annotated[
        bool, Option("--rebuild", help="Read everything again, whatever is there.")
    ] = False,
    include: Annotated[
        list[str] | None,
        Option(help="Read this file too, from now on, though it may hold secrets."),
    ] = None,
    delete: Annotated[
        bool, Option("--delete", help="Delete these from the index; the documents stay.")
    ] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Index documents: only what is new or changed is read. What git ignores is left out.

    PDF, Word, PowerPoint and Excel need the extra `documents`.

    \b
    unified-flow index docs/ README.md
    unified-flow index manuals/ --collection manuals
    unified-flow index https://example.org/page    fetched now, and again each time
    unified-flow index --rebuild docs/
    unified-flow index --delete old-docs/          those that are gone for good

    In shared mode this is what publishes the index for all workers.

    What an index holds: unified-flow collections show

    Exit codes: 0 done, 1 the index is broken, 2 usage or configuration, 130 interrupted.
    """
    from unified_flow.config.document_roots import folders_of
    from unified_flow.retrieval.documents import open_documents

    paths = [*(paths or ()), *(docs or ())]
    if delete and (rebuild or include):
        raise typer.BadParameter("--delete goes alone")
    if delete and not paths:
        raise typer.BadParameter("--delete needs the folders, files or pages to delete")
    named = None if delete else [*paths, *(include or ())]
    documents = open_documents(home, named, collection)
    try:
        if delete:
            gone = documents.index.forget(paths)
            _publish(home, collection, documents.index)
            done = f"{counted(gone, 'file')} deleted from the index; the documents are untouched"
            say_result(as_json, {"removed": gone}, done)
            return
        with progress_bar("indexing", show=sys.stderr.isatty()) as progress:
            report = documents.refresh(progress, rebuild=rebuild, fetch_again=True)
        _publish(home, collection, documents.index)
        folders = folders_of(documents.watched())
        say_object(_of_report(report)) if as_json else _show(report, folders)
        note_unasked(home, collection)
    finally:
        documents.close()


def _publish(home: Path | None, collection: str | None, index: Index) -> None:
    """In shared mode, publish the index for all workers."""
    from unified_flow.retrieval.documents import publish
    from unified_flow.stores import shared_database

    if (database := shared_database(find_home(home))) is None:
        return
    if (snapshot := publish(home, collection, index, database)) is not None:
        note(f"published for all workers: {snapshot}")


def _of_report(report: IndexReport) -> dict[str, Any]:
    names = ("roots", "files", "added", "changed", "removed", "unchanged", "chunks")
    return {name: getattr(report, name) for name in names} | {
        "skipped": [{"path": path, "reason": reason} for path, reason in report.skipped],
        "guessed": [{"path": path, "encoding": code} for path, code in report.guessed],
        "unread": [{"path": path, "what": what} for path, what in report.unread],
        "duration_ms": round(report.duration_ms, 1),
    }


def _show(report: IndexReport, folders: Sequence[Path]) -> None:
    """Names files as they can be opened from here, where they are below one of `folders`."""
    from unified_flow.cli.answer import clickable

    say(
        f"{held(report.files, report.chunks)} in {report.duration_ms:.0f} ms "
        f"({report.added} new, {report.changed} changed, {report.removed} removed)"
    )
    for path, encoding in report.guessed:
        say(f"  read as {encoding}: {clickable(path, folders)}")
    for path, what in report.unread:
        say(f"  not read as a whole: {clickable(path, folders)} ({what})")
    for path, reason in report.skipped[:SKIPPED_SHOWN]:
        say(f"  skipped: {clickable(path, folders)} ({reason})")
    if len(report.skipped) > SKIPPED_SHOWN:
        say(f"  … and {len(report.skipped) - SKIPPED_SHOWN} more (all with --json)")
    if any(reason.startswith("may hold secrets") for _, reason in report.skipped):
        note("hint: index --include PATH reads what may hold secrets")
    if any("not fetched" in reason for _, reason in report.skipped):
        note("a page that could not be fetched stays as it was, if it was there before")
