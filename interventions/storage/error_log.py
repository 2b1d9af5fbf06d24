"""Where a failure is written whole, whatever becomes of it in the queue.

Three places, each the fallback of the one before: the day's error log, the day's emergency log, and
stderr as one JSON line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from interventions.entry import Entry
from interventions.home import emergency_log, error_log
from interventions.storage import jsonl
from interventions.storage.queue_file import LogLine
from interventions.storage.store import Admission, PutResult
from interventions.times import to_text, utc_now

# What a line says beside the failure. `event` is what people were notified of, `letter` the one in
# which the failure came.
ADDED = ("logged_at", "admission", "intervention_id", "reason", "detail", "event", "letter")


def log_line(result: PutResult, letter: str = "") -> LogLine:
    """The failure as it stands in `logs/errors/YYYY-MM-DD.jsonl`."""
    now = utc_now()
    fields = {"logged_at": to_text(now), **result.admission.fields}
    if result.event:
        fields["event"] = result.event
    if letter:
        fields["letter"] = letter
    data = jsonl.encode_with(jsonl.encode_entry(result.failure), fields)
    return LogLine(now.date(), letter, data)


def log_failures(home: Path, lines: Iterable[LogLine], *, again: bool = False) -> bool:
    """False if the log cannot be written; the lines then go to the emergency log. With `again`
    only the lines that are missing are written, and nowhere else. Never raises."""
    written = True
    for day, of_day in groupby(lines, lambda line: line.day):
        path, data = error_log(home, day), [line.data for line in of_day]
        try:
            jsonl.append(path, *(jsonl.lacking(path, data) if again else data))
        except OSError as error:
            written = False
            detail = f"the error log cannot be written: {error.strerror or error}"
            for failure in () if again else map(json.loads, data):
                # One that was dropped is in the emergency log in any case, with why it was.
                if failure["admission"] != "dropped":
                    _log_emergency(home, {**failure, "reason": "storage", "detail": detail})
    return written


def log_emergency(home: Path, failure: Entry, admission: Admission) -> None:
    """One line of the emergency log, durable; failing that, of stderr, and of the emergency log
    once this process can write it. Never raises."""
    _log_emergency(home, {**failure, "logged_at": to_text(utc_now()), **admission.fields})


def _log_emergency(home: Path, line: dict[str, Any]) -> None:
    try:
        path = emergency_log(home, utc_now().date())
        jsonl.append_or_keep(path, jsonl.encode(line), durable=True)
    except OSError as error:
        line["detail"] = f"{line['detail']}; emergency log: {error.strerror or error}".lstrip("; ")
        # After a closed or full stderr there is no other place.
        with suppress(OSError, ValueError):
            sys.stderr.write(json.dumps(line, ensure_ascii=True) + "\n")
            sys.stderr.flush()
