"""The sections of an entry, and the phases of a turn in a line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from interventions.entry import Transition, complete
from interventions.storage.jsonl import is_too_deep
from interventions.view.description import Kind, describe
from interventions.view.ribbon import in_line, phases
from monitor.widgets.turn_text import ribbon_line, ribbon_summary

NOW = datetime(2026, 3, 14, tzinfo=UTC)
RIBBON = [
    {"name": "planner", "status": "completed", "duration_ms": 3},
    {"name": "coordinator", "status": "failed", "duration_ms": 1200},
    {"name": "synthesis", "status": "not_run"},
]
FULL: dict[str, Any] = {
    "id": "int_1_aaaaaa",
    "created_at": "2026-01-01T00:00:00Z",
    "error_type": "E",
    "error_message": "boom",
    "regression_of": "int_1_bbbbbb",
    "superseded": "the turn went another way",
    "traceback": "E: boom",
    "context": {
        "turn": {
            "ribbon": RIBBON,
            "question": "why?",
            "input": {"planner": {"steps": ["search", {"tool": "doc.search"}]}},
            "evidence": [{"tool": "doc.search", "passages": [{"source": "a.md:5", "score": 0.5}]}],
            "seed": 7,
        },
        "query": "q",
        "hint": "start the server",
    },
    "turns": [5, 6, 7],
    "latest_sample": {"error_message": "again"},
    "merged": [{"count": 2, "fingerprint": "f"}],
    "resolutions": [{"note": "mended", "verified": True}],
    "environment": {"python": "3.11"},
}


def test_each_kind_of_section_is_told_in_this_order() -> None:
    entry = complete(FULL)
    journal: list[Transition] = [{"at": "now", "action": "resolve"}]
    told = describe(entry, [entry], journal, NOW, changed=["python 3.11 -> 3.12"])
    assert list(dict.fromkeys(section.kind for section in told)) == list(Kind)


def test_what_there_is_nothing_of_has_no_section() -> None:
    least = complete({"id": "int_1_aaaaaa", "created_at": "2026-01-01T00:00:00Z"})
    told = describe(least, [], [], NOW)
    assert [section.kind for section in told] == [Kind.HEAD, Kind.ERROR, Kind.COMMANDS]


def test_what_a_section_says() -> None:
    alike = complete({**FULL, "id": "int_1_cccccc", "session_id": "s", "turn_id": 9})
    told = {one.kind: one.lines for one in describe(complete(FULL), [], [], NOW, alike=[alike])}
    assert told[Kind.HEAD][-1] == "since 72d ago (2026-01-01 00:00:00Z)"
    assert told[Kind.HINT] == ["start the server"]
    assert told[Kind.WAITING] == ["it blocks turns 5 to 7 too", "cccccc  session s, turn 9"]
    assert told[Kind.EVIDENCE] == ["doc.search", "  0.500  a.md:5  ?"]
    assert told[Kind.INPUT] == ["planner:", "  steps:", "    - search", "    - tool: doc.search"]
    assert told[Kind.CONTEXT] == ["query: q"]


def test_a_resolution_says_whether_a_turn_has_verified_it() -> None:
    row = {"note": "mended", "verified": True, "turn_status": "failed in planner"}
    closed = {"resolved_at": "2026-01-02T00:00:00Z", "resolution": "mended", "resolutions": [row]}
    entry = complete(FULL | closed)
    told = {one.kind: one.lines for one in describe(entry, [], [], NOW)}
    after = ["resolved, verified: mended", "after: the turn failed in planner"]
    assert told[Kind.HEAD][-2:] == after


def test_what_its_turn_failed_with_since_is_told_beside_the_failure() -> None:
    again = {"error_type": "OSError", "error_message": "disk full", "turn_id": 4}
    entry = complete(FULL | {"turn_id": 4, "latest_sample": again})
    told = {one.kind: one.lines for one in describe(entry, [], [], NOW)}
    assert told[Kind.ERROR][:2] == ["E: boom", "now: OSError: disk full"]
    same = complete(
        FULL | {"turn_id": 4, "latest_sample": again | {"error_type": "E", "error_message": "boom"}}
    )
    assert describe(same, [], [], NOW)[3].lines[0] == "E: boom"


def test_a_failure_of_another_program_has_no_turn() -> None:
    entry = complete({**FULL, "session_id": "nightly", "turn_id": 0})
    assert "session nightly" in describe(entry, [], [], NOW)[0].lines


def test_a_fix_that_did_not_last_is_told_once() -> None:
    earlier = complete({**FULL, "id": "int_1_bbbbbb"})
    told = {one.kind: one for one in describe(complete(FULL), [earlier], [], NOW)}
    assert Kind.REGRESSION not in told
    assert told[Kind.KNOWN_FIXES].title == "Known fixes, of which bbbbbb did not last"


def test_that_it_was_superseded_must_not_be_overlooked() -> None:
    second = describe(complete(FULL), [], [], NOW)[1]
    assert (second.kind, second.lines) == (Kind.SUPERSEDED, ["the turn went another way"])


def test_a_ribbon_in_marks_in_words_and_in_short() -> None:
    steps = phases(RIBBON)
    assert ribbon_line(steps).plain == "✓ ✗ ·"
    assert in_line(steps) == "✓ planner  ✗ coordinator  · synthesis"
    assert ribbon_summary(steps) == "coordinator failed after 1.2 s, 1 never ran"


@pytest.mark.parametrize(
    ("value", "told"),
    [(None, ""), ("x", ""), ([5], ""), ([{}], "· ?"), ([{"name": 5, "status": {}}], "· 5")],
)
def test_what_is_no_ribbon_is_shown_as_far_as_it_is_one(value: object, told: str) -> None:
    assert in_line(phases(value)) == told


@pytest.mark.parametrize("within", [lambda deep: [deep], lambda deep: [{"a": deep}]])
def test_what_is_as_deep_as_a_queue_file_may_be_is_shown(within: Callable[[Any], Any]) -> None:
    deep: Any = "x"
    while not is_too_deep({"a": {"context": within(deep)}}):
        deep = within(deep)
    (section,) = [
        one
        for one in describe(complete(FULL | {"context": {"deep": deep}}), [], [], NOW)
        if one.kind is Kind.CONTEXT
    ]
    assert "x" in "".join(section.lines)
