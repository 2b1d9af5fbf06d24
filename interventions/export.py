"""One intervention, redacted once more, as a text to hand on."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Literal

from interventions.entry import Entry
from interventions.home import PRIVATE_FILE_MODE
from interventions.plaintext import clean
from interventions.queue import InterventionQueue

FormName = Literal["json", "markdown", "pytest"]
# By the end of a file's name.
FORMS: dict[str, FormName] = {".json": "json", ".md": "markdown", ".py": "pytest"}


def exported(queue: InterventionQueue, entry: Entry, form: FormName, now: datetime) -> str:
    """The entry as JSON, as Markdown, or as a test that replays its turn. Raises QueueError."""
    if form == "pytest":
        from interventions.retry.contract import find_turn_reader

        return clean(find_turn_reader().as_pytest(entry, queue.home))
    from interventions.view import description  # late: commands take a while for it

    past, journal = queue.similar(entry["id"]), queue.journal(entry["id"])
    render = description.as_markdown if form == "markdown" else description.as_json
    return clean(render(entry, past, journal, now))


def write_private(path: Path, text: str, *, replace: bool) -> None:
    """Write for the file's owner alone. Raises OSError, also for a file not to `replace`."""
    there = os.O_TRUNC if replace else os.O_EXCL
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | there, PRIVATE_FILE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
