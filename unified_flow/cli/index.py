"""`unified-flow index`: read documents into the search index."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from interventions.cli.screen import say
from interventions.plaintext import clean
from unified_flow.cli import options
from unified_flow.cli.exits import exits

SKIPPED_SHOWN = 20


def index(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files and folders [default: as configured].")
    ] = None,
    rebuild: Annotated[
        bool, typer.Option(help="Read everything again, whatever is there.")
    ] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Index documents: only what is new or changed is read. What git ignores is left out.

    \b
    unified-flow index docs/ README.md
    unified-flow index --rebuild docs/
    """
    with exits():
        from unified_flow.cli.progress import bar
        from unified_flow.errors import InputError
        from unified_flow.wiring import wire

        documents = wire(home, docs=paths or None).documents
        if documents is None:
            raise InputError("no documents are named", hint="unified-flow index FOLDER")
        with bar("indexing", show=sys.stderr.isatty()) as progress:
            report = documents.refresh(progress, rebuild=rebuild)
        documents.close()
        if as_json:
            own = {
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
            say(json.dumps(own, ensure_ascii=False))
            return
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
