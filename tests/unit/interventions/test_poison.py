"""Whatever a caller gives to the queue, it is read afterwards: a bad argument is an error that
names it, and the file is as it was."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from typer.testing import CliRunner

from interventions import (
    ArgumentError,
    InterventionQueue,
    InterventionRequest,
    QueueError,
    create_intervention_request,
    intervene,
    resolve_intervention,
)
from interventions.cli import SECTIONS, app
from interventions.doctor import examine
from interventions.entry import complete
from interventions.home import queue_file, transitions_file
from interventions.times import parse_duration

COMMANDS = {name for names in SECTIONS.values() for name in names}
LONG = 20 if os.environ.get("SOAK") else 1
NEEDED: dict[str, Any] = {
    "type": "error",
    "severity": "high",
    "phase": "planner",
    "error_type": "KeyError",
    "error_message": "'x'",
    "session_id": "s",
    "turn_id": 7,
}


class Nested(list[Any]):
    def __repr__(self) -> str:
        return "nested"


DEEP = Nested(["end"])
for _ in range(3000):
    DEEP = Nested([DEEP])
LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP

FOUND = [
    {"turn_id": uuid.UUID(int=2**127).int},
    {"turn_id": 10**5000},
    {"turn_id": -(2**63)},
    {"turns": ["x"]},
    {"turns": [2**70]},
    {"id": ""},
    {"id": "a\nb"},
    {"id": "\x1b]2;title\x1b\\"},
    {"id": " a "},
    {"id": "x" * 10_000},
    {"occurrences": 2**70},
    {"occurrences": -1},
    {"version": 2**63},
    {"snoozed_until_occurrences": 2**64},
    {"superseded": {"a": 1}, "turns": "x"},
    {"created_at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))},
    {"created_at": datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=14)))},
    {"created_at": datetime(2026, 1, 1)},
    {"snoozed_until": "tomorrow"},
    {"fingerprint": "f" * 10_000},
    {"resolutions": "x"},
    {"merged": [1]},
]
HARMLESS = [
    {"context": {"n": float("nan"), "i": [float("inf")], "big": 10**5000}},
    {"context": {"deep": DEEP}},
    {"context": LOOP},
    {"context": {1: 2, None: 3, (4, 5): 6, b"\xff": 7, "\ud800": 8}},
    {"merged": [{"count": 2**70, "turns": "x", "sample": 5}]},
    {"created_at": datetime(1, 1, 1, tzinfo=UTC)},
    {"created_at": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)},
    {"occurrences": 2**63 - 1},
    {"turn_id": 2**63 - 1},
    {"novel": DEEP, "odd": "\ud800", "state": "resolved", "index": 5},
    {f"extra{n}": "x" * 5000 for n in range(1000)},
    {"phase": "\ud800\x00\x1b[31m", "session_id": "a\nb"},
    {"id": "a/../b"},
]


def words_of(value: Any) -> str:
    try:
        return ascii(value)[:50]
    except (ValueError, RecursionError):  # a number too long, a list too deep
        return type(value).__name__


def is_readable(home: Path, ids: set[str]) -> None:
    """Every face reads it, and what was acknowledged is there."""
    queue = InterventionQueue(home)
    assert ids <= {entry["id"] for entry in (*queue.entries(), *queue.history())}
    queue.health()
    queue.journal()
    if queue_file(home).exists():
        text = queue_file(home).read_text(encoding="utf-8")
        assert len(text) < 400_000
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    for words in (["list"], ["list", "--json"], ["history"], ["show", "last"]):
        result = CliRunner().invoke(app, ["--home", str(home), *words])
        assert result.exit_code in (0, 3), result.output


def test_a_field_out_of_range_is_refused_and_leaves_the_file_as_it_was(
    queue: InterventionQueue, home: Path
) -> None:
    kept = queue.put(InterventionRequest(**NEEDED)).intervention_id or ""
    before = queue_file(home).read_bytes()
    for bad in FOUND:
        with pytest.raises((ArgumentError, ValidationError), match=[*bad][-1]):
            queue.put(_with(bad))
        with pytest.raises(ArgumentError, match=[*bad][-1]) as caught:
            create_intervention_request(**{**NEEDED, **bad}, queue=queue)
        assert caught.value.argument in bad
        assert queue_file(home).read_bytes() == before, words_of(bad)
    is_readable(home, {kept})


def _with(fields: dict[str, Any]) -> InterventionRequest:
    return InterventionRequest(**{**NEEDED, **fields})


def test_a_request_that_was_changed_past_its_validation_is_refused_or_read(
    queue: InterventionQueue, home: Path
) -> None:
    for bad in FOUND:
        for made in (
            InterventionRequest(**NEEDED).model_copy(update=bad),
            InterventionRequest.model_construct(**{**NEEDED, "id": "int_1_a", **bad}),
            InterventionRequest.model_construct(**{"id": "int_2_b", **bad}),
        ):
            with suppress(ArgumentError):
                queue.put(made)
        shown = CliRunner().invoke(app, ["--home", str(home), "show", "last"])
        assert shown.exit_code in (0, 3), (words_of(bad), shown.output)
    is_readable(home, set())


@pytest.mark.parametrize("odd", HARMLESS, ids=words_of)
def test_what_is_odd_but_can_be_written_is_read(
    queue: InterventionQueue, home: Path, odd: dict[str, Any]
) -> None:
    ids = {queue.put(_with(odd)).intervention_id or "" for _ in range(2)}
    for _ in range(12):  # counted and merged, too
        assert queue.put(_with(odd))
    assert "" not in ids
    is_readable(home, ids)


@pytest.mark.parametrize("not_a_request", [None, 5, "x", {}, NEEDED, InterventionRequest])
def test_only_a_request_is_put(queue: InterventionQueue, not_a_request: Any) -> None:
    with pytest.raises(ArgumentError, match="request must be InterventionRequest"):
        queue.put(not_a_request)
    with pytest.raises(ArgumentError, match="request must be InterventionRequest"):
        asyncio.run(queue.aput(not_a_request))


TOMORROW = datetime(2999, 1, 1, tzinfo=UTC)  # a constant: it stands in the names of tests
BAD_CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("resolve", "note", {"note": None}),
    ("resolve", "note", {"note": " "}),
    ("resolve", "note", {"note": b"x"}),
    ("resolve", "by", {"note": "n", "by": 5}),
    ("resolve", "via", {"note": "n", "via": None}),
    ("resolve", "expected_version", {"note": "n", "expected_version": "1"}),
    ("dismiss", "note", {"note": 5}),
    ("assign", "owner", {"owner": 5}),
    ("snooze", "until", {}),
    ("snooze", "until", {"until": TOMORROW, "until_n_more": 1}),
    ("snooze", "until", {"until": TOMORROW.replace(tzinfo=None)}),
    ("snooze", "until", {"until": "tomorrow"}),
    ("snooze", "until", {"until": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))}),
    ("snooze", "duration", {"duration": timedelta(0)}),
    ("snooze", "duration", {"duration": timedelta.max}),
    ("snooze", "duration", {"duration": 3600}),
    ("snooze", "until_n_more", {"until_n_more": 2**63 - 1}),
    ("snooze", "until_n_more", {"until_n_more": 10**5000}),
    ("snooze", "until_n_more", {"until_n_more": 0}),
    ("snooze", "until_n_more", {"until_n_more": 1.5}),
    ("snooze", "until_n_more", {"until_n_more": True}),
]


@pytest.mark.parametrize(("action", "argument", "given"), BAD_CALLS, ids=words_of)
def test_a_bad_argument_of_a_change_is_named_and_changes_nothing(
    queue: InterventionQueue, home: Path, action: str, argument: str, given: dict[str, Any]
) -> None:
    name = queue.put(InterventionRequest(**NEEDED)).intervention_id or ""
    before = queue_file(home).read_bytes()
    with pytest.raises(ArgumentError) as caught:
        getattr(queue, action)(name, **given)
    assert caught.value.argument == argument
    assert queue_file(home).read_bytes() == before
    assert queue.journal() == []


@pytest.mark.parametrize("bad_id", [None, 5, b"int_1", ["x"]])
def test_an_id_is_a_text(queue: InterventionQueue, bad_id: Any) -> None:
    for call in (queue.reopen, queue.dismiss, queue.find, queue.similar, queue.get):
        with pytest.raises(ArgumentError, match="intervention_id must be a text"):
            call(bad_id)


@pytest.mark.parametrize(
    "given",
    [
        {"home": 5},
        {"home": "a\0b"},
        {"home": "\ud800"},
        {"home": "~nobody_of_this_name/x"},
        {"max_size": 0},
        {"max_size": "9"},
        {"max_size": 2**70},
        {"max_per_session": 1.5},
        {"lock_timeout_s": float("nan")},
        {"lock_timeout_s": float("inf")},
        {"lock_timeout_s": -1},
        {"lock_timeout_s": "5"},
    ],
    ids=ascii,
)
def test_a_queue_of_nonsense_is_refused(home: Path, given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(given))):
        InterventionQueue(**{"home": home, **given})


def test_the_command_says_what_is_out_of_range(queue: InterventionQueue, home: Path) -> None:
    name = queue.put(InterventionRequest(**NEEDED)).intervention_id or ""
    words = ["snooze", name, "--until-n-more", str(2**63 - 1)]
    result = CliRunner().invoke(app, ["--home", str(home), *words])
    assert result.exit_code == 2
    assert "until_n_more" in result.stderr
    is_readable(home, {name})


@pytest.mark.parametrize("command", ["history", "similar last"])
def test_a_limit_beyond_all_numbers_is_refused(
    queue: InterventionQueue, home: Path, command: str
) -> None:
    queue.put(InterventionRequest(**NEEDED))
    words = ["--home", str(home), *command.split(), "-n", str(10**22)]
    assert CliRunner().invoke(app, words).exit_code == 2


def test_counts_that_would_pass_the_bound_stay_below_it(
    queue: InterventionQueue, home: Path
) -> None:
    for _ in range(20):
        assert queue.put(_with({"occurrences": 2**62}))
    assert max(entry["occurrences"] for entry in queue.entries()) == 2**63 - 1
    is_readable(home, set())


# What a caller may give, of any kind; most of it is no argument at all.
texts = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["", "\ud800", "\x00", "a/../b", "\x1b[2J", "last", "1", "x" * 20_000]
)
numbers = (
    st.integers()
    | st.floats(allow_nan=True)
    | st.sampled_from([2**63 - 1, 2**63, -(2**70), 10**4000, True])
)
times = st.datetimes() | st.datetimes(timezones=st.timezones()) | st.timedeltas()
odd = st.sampled_from([None, DEEP, LOOP, object(), {1, 2}, b"\xff", Path("/"), ValueError, ...])
leaves = texts | numbers | times | odd
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | numbers, inner, max_size=3),
    max_leaves=6,
)
FIELDS = sorted({*InterventionRequest.model_fields, "turns", "superseded", "novel"})
CALLS: dict[str, tuple[str, ...]] = {
    "resolve": ("intervention_id", "note", "by", "via", "expected_version"),
    "dismiss": ("intervention_id", "note", "by", "via", "expected_version"),
    "snooze": ("intervention_id", "until", "duration", "until_n_more", "by"),
    "reopen": ("intervention_id", "by", "expected_version"),
    "assign": ("intervention_id", "owner", "by", "via"),
    "undo": ("intervention_id", "by", "expected_version"),
    "supersede": ("ids", "why", "by"),
    "close_retried": ("ids", "note", "outcome"),
}


def _after(call: Callable[[InterventionQueue, str], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        queue = InterventionQueue(folder)
        name = queue.put(InterventionRequest(**NEEDED)).intervention_id or ""
        with suppress(QueueError, ValidationError):
            call(queue, name)
        is_readable(Path(folder), {name})


@given(st.dictionaries(st.sampled_from(FIELDS), anything, min_size=1, max_size=4))
@settings(max_examples=8 * LONG, deadline=None)
def test_no_request_poisons_it(fields: dict[str, Any]) -> None:
    def call(queue: InterventionQueue, _: str) -> None:
        for put in (
            lambda: queue.put(InterventionRequest(**{**NEEDED, **fields})),
            lambda: queue.put(InterventionRequest(**{**NEEDED, **fields})),
            lambda: create_intervention_request(queue=queue, **{**NEEDED, **fields}),
            lambda: queue.put(InterventionRequest.model_construct(**{"id": "int_1_b", **fields})),
        ):
            with suppress(QueueError, ValidationError):
                put()

    _after(call)


ABOUT = ("session_id", "turn_id", "type", "severity", "tool", "error_category", "request_id")


@given(
    st.dictionaries(st.sampled_from((*ABOUT, "context")), anything, max_size=4), anything, anything
)
@settings(max_examples=10 * LONG, deadline=None)
def test_no_argument_of_intervene_replaces_the_error_or_loses_the_failure(
    fields: dict[str, Any], phase: Any, note: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        error = KeyError("the caller's own")
        error.__notes__ = note
        with (
            pytest.raises(KeyError) as caught,
            intervene(phase=phase, **fields, queue=InterventionQueue(folder)),
        ):
            raise error
        assert caught.value is error
        (entry,) = InterventionQueue(folder).entries()
        assert entry["error_message"] == str(error)
        is_readable(Path(folder), {entry["id"]})


@given(st.data(), st.sampled_from(sorted(CALLS)))
@settings(max_examples=15 * LONG, deadline=None)
def test_no_change_poisons_it(data: st.DataObject, action: str) -> None:
    given_ = {name: data.draw(anything, label=name) for name in CALLS[action]}

    def call(queue: InterventionQueue, name: str) -> None:
        if "intervention_id" in given_ and data.draw(st.booleans(), label="of the entry"):
            given_["intervention_id"] = name
        chosen = data.draw(st.sets(st.sampled_from(sorted(given_))), label="given")
        arguments = {
            key: value
            for key, value in given_.items()
            if key in chosen or key in ("intervention_id", "why", "ids", "failure")
        }
        if action in ("resolve", "close_retried"):
            arguments.setdefault("note", "done")
        if action == "close_retried":
            arguments.setdefault("outcome", "answered")
        if action == "assign":
            arguments.setdefault("owner", "ada")
        getattr(queue, action)(**arguments)

    _after(call)


@given(
    st.sampled_from(sorted(COMMANDS - {"watch", "retry", "doctor"})),
    st.lists(
        st.sampled_from(
            ["last", "--note", "--until", "--for", "--more", "--by", "--json", "--yes", "--query"]
        )
        | texts.filter(lambda text: "\0" not in text)
        | st.integers(-(2**70), 2**70).map(str),
        max_size=5,
    ),
)
@settings(max_examples=10 * LONG, deadline=None)
def test_no_words_of_a_command_poison_it(command: str, words: list[str]) -> None:
    def call(queue: InterventionQueue, name: str) -> None:
        result = CliRunner().invoke(app, ["--home", str(queue.home), command, name, *words])
        assert result.exit_code in (0, 1, 2, 3, 4, 5), result.exception

    _after(call)


json_values = st.recursive(
    st.none() | st.booleans() | numbers.filter(lambda n: n == n and abs(n) < 10**4000) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=5))
@settings(max_examples=25 * LONG, deadline=None)
def test_what_the_reader_takes_is_written_and_read_alike(fields: dict[str, Any]) -> None:
    try:
        entry = complete({"id": "int_1_aaaaaa", "created_at": "2026-01-01T00:00:00Z", **fields})
    except ArgumentError as error:
        assert error.argument in (*fields, "entry")  # noqa: PT017 - only some are refused
        return
    assert complete(entry) == entry
    assert complete(json.loads(json.dumps(entry))) == entry


def test_an_unusable_home_leaves_the_error_and_loses_no_failure(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNIFIED_FLOW_HOME", str(home))
    nowhere: Any = 5
    for given_ in ({"home": nowhere}, {"queue": nowhere}, {"home": "a\0b"}):
        with pytest.raises(OSError, match="own"), intervene(phase="p", **given_):
            raise OSError("own")
    assert len(InterventionQueue(home).entries()) == 3


def test_resolve_intervention_names_its_bad_argument(home: Path) -> None:
    create_intervention_request(**NEEDED, home=home)
    name = InterventionQueue(home).entries()[0]["id"]
    with pytest.raises(ArgumentError, match="note"):
        resolve_intervention(name, "", home=home)


assert sys.getrecursionlimit() < 3000  # DEEP is too deep for Python's own JSON


BY_HAND = {
    "not finite": '"context": {"a": [1e999, -1e999]}',
    "a long number": f'"turn_id": {"9" * 5000}',
    "a number of 70 bits": f'"occurrences": {2**70}',
    "lone surrogates": '"owner": "\\ud800"',
    "deep": f'"context": {{"a": {"[" * 600 + "]" * 600}}}',
    "year 1": '"last_seen": "0001-01-01T00:00:00Z"',
    "no id": '"id": null',
    "turns": '"turns": ["x"]',
}


@pytest.mark.parametrize("odd", BY_HAND.values(), ids=BY_HAND)
@pytest.mark.parametrize("in_lines", [True, False])
def test_one_odd_entry_of_a_file_costs_no_other(
    queue: InterventionQueue, home: Path, odd: str, in_lines: bool
) -> None:
    kept = queue.put(InterventionRequest(**NEEDED)).intervention_id or ""
    path = queue_file(home)
    odd = f'{{"id": "int_2_b", "created_at": "2026-01-01T00:00:00Z", {odd}}}'
    first, _, rest = path.read_text().partition("[\n" if in_lines else "[")
    path.write_text(f"{first}[\n{odd},\n{rest}" if in_lines else f"{first}[{odd}, {rest}")
    assert kept in {entry["id"] for entry in InterventionQueue(home).entries()}
    again = InterventionQueue(home).put(_with({"session_id": "another"}))
    assert again
    is_readable(home, {kept, again.intervention_id or ""})


@pytest.mark.parametrize("text", ["999999w" * 200, "9" * 400 + "d"])
def test_a_duration_beyond_the_calendar_is_none(text: str) -> None:
    assert parse_duration(text) is None


AROUND = {
    "no version": ("version", None),
    "a version of words": ("version", "2-beta"),
    "no answers": ("letters", [1]),
    "a text of answers": ("letters", "x"),
    "a number of transitions": ("transitions", 5),
    "transitions that are none": ("transitions", ["x", {"transition_id": [1]}, {}]),
    "an object of transitions": ("transitions", {"a": 1}),
}


@pytest.mark.parametrize(("name", "value"), AROUND.values(), ids=AROUND)
def test_what_stands_around_the_entries_costs_none(
    queue: InterventionQueue, home: Path, name: str, value: Any
) -> None:
    kept = queue.put(InterventionRequest(**NEEDED)).intervention_id or ""
    path = queue_file(home)
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    assert InterventionQueue(home).open_count() == 1
    again = InterventionQueue(home).put(_with({"session_id": "another"}))
    assert again.kind == "accepted"
    InterventionQueue(home).assign(kept, "ada")
    InterventionQueue(home).undo()
    is_readable(home, {kept, again.intervention_id or ""})


ODD_LINES: list[dict[str, Any]] = [
    {"action": "prune"},
    {"action": "prune", "closed_before": 5},
    {"action": "prune", "closed_before": "0", "after": {}},
    {"action": "drain"},
    {"action": "drain", "id": "int_1_aaaaaa", "failure_id": []},
    {"action": "rebuild", "rebuilt_from": [[]], "given_up": 5},
    {"action": "turns", "id": "last"},
    {"action": "turns", "id": "last", "turns": ["x"], "merged": {"f": 5}},
    {"action": []},
    {"action": "assign", "id": "last", "before": None, "after": None},
    {"action": "assign", "id": "last", "before": {}, "after": {}},
    {"action": "assign", "id": "last", "version_from": 1, "version_to": []},
]


@pytest.mark.parametrize("odd", ODD_LINES, ids=str)
def test_an_odd_line_of_the_journal_keeps_nobody_from_the_queue(
    home: Path, queue: InterventionQueue, odd: dict[str, Any]
) -> None:
    name = queue.put(InterventionRequest(**NEEDED)).intervention_id
    queue.assign(name, "ada")
    line = {"transition_id": "f" * 12, "at": "2026-01-01T00:00:00Z", "by": "x", **odd}
    if odd.get("id") == "last":
        line["id"] = name
    with transitions_file(home).open("a") as journal:
        journal.write(json.dumps(line) + "\n")
    assert queue.entries()[0]["owner"] == "ada"
    assert queue.put(InterventionRequest(**NEEDED))
    queue_file(home).unlink()
    assert all(one.fine or one.mended for one in examine(queue, mend=True))
    assert queue.undo(name)[1]["owner"] is None


def test_a_change_that_a_hand_has_spoilt_spoils_no_rebuild(
    home: Path, queue: InterventionQueue
) -> None:
    name = queue.put(InterventionRequest(**NEEDED)).intervention_id
    queue.assign(name, "ada")
    journal = transitions_file(home)
    journal.write_text(journal.read_text().replace('"ada"', '"ada", "turns": "x"'))
    queue_file(home).unlink()
    examine(queue, mend=True)
    assert [entry["id"] for entry in queue.entries()] == [name]


def test_a_letter_that_is_none_keeps_nobody_from_a_put(
    queue: InterventionQueue, home: Path
) -> None:
    folder = queue_file(home).with_suffix(".letters")
    folder.mkdir(parents=True)
    (folder / "deep").write_text("[" * 100_000)
    assert queue.put(InterventionRequest(**NEEDED)).kind == "accepted"


@pytest.mark.parametrize("answer", [5, {}, {"kind": "accepted"}])
def test_an_odd_answer_to_an_old_letter_keeps_nobody_from_a_put(
    home: Path, queue: InterventionQueue, answer: Any
) -> None:
    queue.put(InterventionRequest(**NEEDED))
    document = json.loads(queue_file(home).read_text())
    letter = {"failure": document["interventions"][0], "limits": vars(queue.limits)}
    path = queue_file(home).with_suffix(".letters") / "abc"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(letter))
    os.utime(path, (0, 0))
    queue_file(home).write_text(json.dumps({**document, "letters": {"abc": answer}}))
    assert queue.put(InterventionRequest(**NEEDED))


@pytest.mark.parametrize("name", ["type", "severity"])
def test_an_argument_that_nothing_could_print_is_refused(home: Path, name: str) -> None:
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(ArgumentError, match=name):
        create_intervention_request(home=home, **NEEDED | {name: deep})
    assert not queue_file(home).exists()
