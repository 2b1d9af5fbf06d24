"""`show` and `export`: one entry, whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from interventions.cli.exits import UsageError, exits
from interventions.cli.hints import home_flag
from interventions.cli.options import AsJson, Home, Id, the_queue
from interventions.cli.screen import note, paint, say, say_json, say_painted
from interventions.cli.view import entry_view
from interventions.timestamps import utc_now
from interventions.view.plaintext import clean


def show(intervention_id: Id, home: Home = None, as_json: AsJson = False) -> None:
    """Everything about one intervention, and the commands to go on."""
    from interventions.retry.resumers import has_resumer
    from interventions.view.describe import describe

    with exits():
        queue = the_queue(home)
        now = utc_now()
        entry = queue.find(intervention_id)
        past = queue.similar(entry["id"])
        journal = queue.journal(entry["id"])
        if as_json:
            view = entry_view(entry, now)
            say_json({**view, "similar": [entry_view(e, now) for e in past], "journal": journal})
            return
        told = describe(entry, past, journal, now, home_flag=home_flag(home), resumer=has_resumer())
        for section in told:
            say_painted(paint(section.title, "bold"))
            for line in section.texts:
                say(f"  {line}" if line else "")
            say("")


def export(
    intervention_id: Id,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write this file instead of stdout.", show_default=False
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Markdown instead of JSON, to paste anywhere.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option("--as", metavar="FORM", help="json, markdown, or pytest: a test of its turn."),
    ] = None,
    home: Home = None,
) -> None:
    """One intervention, redacted once more, to hand on."""
    if form not in (None, "json", "markdown", "pytest"):
        raise typer.BadParameter(f"{form!r} is no form: json, markdown or pytest")
    markdown = markdown or form == "markdown"
    from interventions.home import PRIVATE_FILE_MODE
    from interventions.view.export import as_json, as_markdown

    with exits():
        queue = the_queue(home)
        entry = queue.find(intervention_id)
        if form == "pytest":
            from interventions.retry.turns import find_turn_reader

            text = find_turn_reader().as_pytest(entry, queue.home)
        else:
            past, journal = queue.similar(entry["id"]), queue.journal(entry["id"])
            render = as_markdown if markdown else as_json
            text = render(entry, past, journal, utc_now())
        text = clean(text)
        if output is None:
            say(text)
            return
        try:
            fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE_MODE)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError as error:
            raise UsageError(f"cannot write {output}: {error.strerror or error}") from error
        note(f"wrote {output}")
