"""`unified-flow index`: read documents into the search index, and say what is in it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer

from interventions.cli.terminal import note, say
from interventions.plaintext import clean
from unified_flow.cli import completing, options
from unified_flow.cli.screen import counted
from unified_flow.cli.unasked import note_unasked

if TYPE_CHECKING:
    from pathlib import Path

    from unified_flow.retrieval.index_update import IndexReport

SKIPPED_SHOWN = 20


def index(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files, folders and web pages [default: as configured].",
            click_type=click.Path(path_type=str),
            autocompletion=completing.paths,
        ),
    ] = None,
    collection: options.CollectionName = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Read everything again, whatever is there.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and index what changes, until Ctrl-C.")
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Say what the index holds; read nothing.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Take these out of the index again; read nothing.")
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
    unified-flow index --stats
    unified-flow index --rebuild docs/
    unified-flow index --forget old-docs/          as where they are gone for good

    Exit codes: 0 done, also a watch that Ctrl-C ended, 1 the index is broken, 2 usage or
    configuration, 130 interrupted.
    """
    from unified_flow.cli.progress import bar
    from unified_flow.retrieval.documents import open_documents

    if forget and (stats or rebuild or watch):
        raise typer.BadParameter("--forget goes alone")
    if stats and (rebuild or watch):
        raise typer.BadParameter("--stats only looks: leave out --rebuild and --watch")
    if forget:
        _forget(paths or [], home, collection, as_json)
        return
    documents = open_documents(home, paths, collection)
    try:
        if stats:
            from unified_flow.cli.index_stats import show

            show(documents.statistics(), as_json)
            if not paths:
                note_unasked(home, collection)
            return
        with bar("indexing", show=sys.stderr.isatty()) as progress:
            report = documents.refresh(progress, rebuild=rebuild, fetch_again=True)
        say(json.dumps(of_report(report), ensure_ascii=False)) if as_json else _show(report)
        note_unasked(home, collection)
        if watch:
            from unified_flow.cli.watching import watch_documents

            watch_documents(documents, report, as_json)
    finally:
        documents.close()


def _forget(paths: list[str], home: Path | None, collection: str | None, as_json: bool) -> None:
    from unified_flow.retrieval.documents import open_documents

    if not paths:
        raise typer.BadParameter("--forget needs the folders, files or pages to forget")
    documents = open_documents(home, None, collection)
    try:
        removed = documents.index.forget(paths)
    finally:
        documents.close()
    told = f"{counted(removed, 'file')} taken out of the index; the documents are untouched"
    say(json.dumps({"removed": removed}) if as_json else told)


def of_report(report: IndexReport) -> dict[str, Any]:
    return {
        "roots": report.roots,
        "files": report.files,
        "added": report.added,
        "changed": report.changed,
        "removed": report.removed,
        "unchanged": report.unchanged,
        "chunks": report.chunks,
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
        say(clean(f"  read as {encoding}: {path}"))
    for path, reason in report.skipped[:SKIPPED_SHOWN]:
        say(clean(f"  skipped: {path} ({reason})"))
    if len(report.skipped) > SKIPPED_SHOWN:
        say(f"  … and {len(report.skipped) - SKIPPED_SHOWN} more (all with --json)")
    if any("not fetched" in reason for _, reason in report.skipped):
        note("a page that could not be fetched stays as it was, if it was there before")
