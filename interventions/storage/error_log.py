"""Where a failure is written whole, whatever becomes of it in the queue.

Three places, each the fallback of the one before: the day's error log, the day's emergency log, and
stderr as one JSON line.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from interventions.entry import Entry
from interventions.home import emergency_log, error_log
from interventions.storage import jsonl
from interventions.storage.store import Admission
from interventions.times import to_text, utc_now


def log_failure(home: Path, failure: Entry, admission: Admission) -> None:
    """One line of `logs/errors/YYYY-MM-DD.jsonl`; never raises."""
    now = utc_now()
    try:
        line = jsonl.encode_with(jsonl.encode_entry(failure), _admission_fields(admission, now))
        jsonl.append(error_log(home, now.date()), line)
    except OSError as error:
        detail = f"the error log cannot be written: {error.strerror or error}"
        if not admission:
            # The emergency line is written in any case, with the reason that matters.
            return
        log_emergency(home, failure, replace(admission, reason="storage", detail=detail))


def log_emergency(home: Path, failure: Entry, admission: Admission) -> None:
    """One line of the emergency log, durable; failing that, of stderr. Never raises."""
    line = {**failure, **_admission_fields(admission, utc_now())}
    try:
        path = emergency_log(home, utc_now().date())
        jsonl.append(path, jsonl.encode(line), durable=True)
    except OSError as error:
        line["detail"] = f"{line['detail']}; emergency log: {error.strerror or error}".lstrip("; ")
        # After a closed or full stderr there is no other place.
        with suppress(OSError, ValueError):
            sys.stderr.write(json.dumps(line, ensure_ascii=True) + "\n")
            sys.stderr.flush()


def _admission_fields(admission: Admission, now: datetime) -> dict[str, Any]:
    return {
        "logged_at": to_text(now),
        "admission": str(admission.kind),
        "intervention_id": admission.intervention_id,
        "reason": admission.reason,
        "detail": admission.detail,
    }
