"""What a hand-made file may hold, and what is read of it without an error."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import interventions
from interventions.cli.entries import table
from interventions.entry import Entry, Sample, complete
from interventions.view.description import describe
from interventions.view.groups import entry_view, grouped
from interventions.view.query import parse

NOW = datetime(2026, 3, 14, tzinfo=UTC)
LEAST: dict[str, Any] = {"id": "int_1_aaaaaa", "created_at": "2026-01-01T00:00:00Z"}
FIELDS = (
    *("type", "severity", "phase", "tool", "error_type", "error_message", "session_id", "turn_id"),
    *("error_category", "request_id", "traceback", "exception_type", "culprit", "location"),
    *("fingerprint", "resolution", "retry_of", "regression_of", "regression_note", "owner"),
    *("superseded", "context", "environment", "latest_sample", "occurrences", "version", "turns"),
    *("merged", "resolutions", "snoozed_until_occurrences", "snoozed_until", "first_seen"),
)
ODD = (5, "x", ["x"], {"a": 1}, [5], [{}], True, 10**400, [{"sample": "x", "fingerprint": []}])
ESCAPE = "\x1b]2;title\x1b\\"


def _told(entry: dict[str, Any]) -> list[str]:
    """Everything that is said of an entry, on whatever face."""
    journal = [{"id": entry["id"], "after": 3}, {"id": entry["id"], "at": ESCAPE}]
    sections = describe(entry, [entry], journal, NOW)
    lines = [line for one in sections for line in (one.title, *one.lines)]
    return lines + table(grouped([entry]), 140, NOW)


@pytest.mark.parametrize("field", FIELDS)
def test_an_odd_value_is_shown_or_refused(field: str) -> None:
    refusals = []
    for value in ODD:
        try:
            entry = complete({**LEAST, field: value})
        except ValueError as error:
            refusals.append(str(error))
            continue
        assert _told(entry)
        assert entry_view(entry, NOW)["state"]
        assert parse("is:open boo owner:x tool:y").matches(entry, NOW) in (True, False)
        assert complete(entry) == entry
    assert [words for words in refusals if field not in words] == []


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_beyond_the_calendar_is_refused(moment: str) -> None:
    with pytest.raises(ValueError, match="created_at"):
        complete({**LEAST, "created_at": moment})


def test_what_is_no_text_is_kept_as_json() -> None:
    entry = complete({**LEAST, "traceback": ["a", "b"], "environment": ["x"]})
    assert entry["traceback"] == '["a", "b"]'
    assert entry["environment"] == {"value": ["x"]}


def test_nothing_that_is_said_commands_a_terminal() -> None:
    """In every field, the id included."""
    texts = {name: f"a{ESCAPE}" for name in FIELDS[:22] if name not in ("turn_id",)}
    deep = {ESCAPE: {ESCAPE: ESCAPE}}
    entry = complete(
        {
            **LEAST,
            **texts,
            "id": f"int_1{ESCAPE}_a{ESCAPE}",
            "context": {**deep, "turn": {"ribbon": [{"name": ESCAPE, "status": "failed"}]}},
            "environment": deep,
            "latest_sample": {"error_message": ESCAPE, **deep},
            "merged": [
                {"phase": ESCAPE, "error_type": ESCAPE, "sample": {"error_message": ESCAPE}}
            ],
            "resolutions": [{"kind": "resolved", "by": ESCAPE, "note": ESCAPE, "at": ESCAPE}],
        }
    )
    assert not [line for line in _told(entry) if "\x1b" in line]


@pytest.mark.parametrize("package", ["interventions", "monitor"])
def test_no_key_of_an_entry_is_misspelt(package: str) -> None:
    """mypy refuses `entry["turn_idd"]`, but accepts `entry.get("turn_idd")`."""
    known = {*Entry.__annotations__, *Sample.__annotations__}
    folder = Path(interventions.__file__).parent.parent / package
    read = [
        (call.args[0].value, f"{path}:{call.lineno}")
        for path in folder.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "get"
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in ("entry", "failure", "retried", "other", "sample")
        and isinstance(call.args[0], ast.Constant)
    ]
    assert read
    assert [place for key, place in read if key not in known] == []
