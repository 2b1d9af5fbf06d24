"""What becomes of a failure when it is put: pure decisions, no storage.

Source: "Backpressure Behavior" of the core document; the two cases before its four are ours, and so
is the escalation. The limits of a session and of an error type keep one failure from flooding the
queue; an escalation is no failure but a user who waits for an answer of their own. So it is never
merged, and counts only towards the queue's size and a limit of its own: one session must not take
all the room that the failures of others need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from interventions.entry import (
    ESCALATION,
    MOST,
    Entry,
    MergedFailure,
    Sample,
    is_snoozed,
    open_ones,
    severity_rank,
    turns_of,
)
from interventions.settings import Limits
from interventions.storage.store import AdmissionKind

# Merged fingerprints that keep a sample, and those that keep at least their name and count.
MERGED_WITH_SAMPLE = 10
MERGED_ROWS = 100
_MERGED_TEXT = 2_000


class Decision(NamedTuple):
    """`target` is the entry that takes the failure; `closes` the retried entry that got past it;
    `detail` is why it is dropped."""

    kind: AdmissionKind
    reason: str = ""
    target: Entry | None = None
    closes: Entry | None = None
    detail: str = ""


def decide(entries: Sequence[Entry], failure: Entry, limits: Limits, now: datetime) -> Decision:
    """The newest of several entries is the last one in the queue's own order, which a clock that
    jumps back cannot change."""
    name = failure["fingerprint"]
    same_failure = open_ones([entry for entry in entries if entry["fingerprint"] == name])
    if snoozed := [entry for entry in same_failure if is_snoozed(entry, now)]:
        return Decision(AdmissionKind.COUNTED, "snoozed", snoozed[-1])

    wanted = failure.get("retry_of")
    retried = next((e for e in open_ones(entries) if e["id"] == wanted), None) if wanted else None
    if retried is not None:
        if retried["phase"] == failure["phase"]:
            return Decision(AdmissionKind.COUNTED, "retried", retried)
        entries = [entry for entry in entries if entry is not retried]

    limit, words = limit_reached(entries, failure, limits)
    if failure["type"] == ESCALATION and limit != "queue_full":
        asked = [entry for entry in same_failure if _same_message(entry, failure)]
        if asked:
            return Decision(AdmissionKind.COUNTED, "delivered", asked[-1], retried)
    if not limit:
        return Decision(AdmissionKind.ACCEPTED, closes=retried)
    if limit in ("queue_full", "session_escalations"):
        return Decision(AdmissionKind.DROPPED, limit, closes=retried, detail=words)
    if limit == "error_type":
        same = _alike(entries, failure, "error_type")
        return Decision(AdmissionKind.COUNTED, limit, _same_or_newest(same, failure), retried)
    same = _alike(entries, failure, "session_id")
    same_type = [entry for entry in same if entry["type"] == failure["type"]]
    target = _same_or_newest(same_type or same, failure)
    return Decision(AdmissionKind.MERGED, limit, target, retried)


def limit_reached(entries: Sequence[Entry], failure: Entry, limits: Limits) -> tuple[str, str]:
    """(which limit one more open entry would pass, the same in words); empty when there is room."""
    session, error_type = failure["session_id"], failure["error_type"]
    if len(entries) >= limits.max_size and (count := len(open_ones(entries))) >= limits.max_size:
        return "queue_full", f"{count} of {limits.max_size} entries are open"
    count = len(_alike(entries, failure, "session_id"))
    if failure["type"] == ESCALATION:
        most = limits.max_escalations_per_session
        words = f"session {session} has {count} of {most} escalations open"
        return ("session_escalations", words) if count >= most else ("", "")
    if count >= limits.max_per_session:
        return "session", f"session {session} has {count} of {limits.max_per_session} open"
    count = len(_alike(entries, failure, "error_type"))
    if count >= limits.max_per_error_type:
        return "error_type", f"{error_type} has {count} of {limits.max_per_error_type} open"
    return "", ""


def _alike(
    entries: Sequence[Entry], failure: Entry, name: Literal["session_id", "error_type"]
) -> list[Entry]:
    """The open entries that share the failure's value; escalations have limits of their own."""
    value, escalates = failure[name], failure["type"] == ESCALATION
    same = open_ones([entry for entry in entries if entry[name] == value])
    return [entry for entry in same if (entry["type"] == ESCALATION) == escalates]


def _same_message(entry: Entry, failure: Entry) -> bool:
    """Whether one message was delivered twice, so that one user waits."""
    request = failure.get("request_id")
    return request is not None and all(
        entry.get(name) == failure.get(name) for name in ("request_id", "session_id", "context")
    )


def _same_or_newest(candidates: Sequence[Entry], failure: Entry) -> Entry:
    same = [e for e in candidates if e["fingerprint"] == failure["fingerprint"]]
    return (same or candidates)[-1]


def count_onto(entry: Entry, failure: Entry) -> Entry:
    """The entry with the failure counted: as its latest sample, or as a row of `merged`. A flood
    must not hide somebody's critical error."""
    turns = [turn for turn in turns_of(failure) if turn != entry["turn_id"]]
    changed = cast(Entry, _counted(entry, failure, turns, "occurrences"))
    if failure["fingerprint"] == entry["fingerprint"]:
        changed["latest_sample"] = sample_of(failure)
    else:
        changed["merged"] = _merge(entry.get("merged") or [], failure, turns)
    return changed


def _counted(
    taker: Mapping[str, Any], failure: Entry, turns: list[int], counter: str = "count"
) -> dict[str, Any]:
    """An entry or a row of `merged` with the failure counted; `turns` are those that the entry did
    not begin with. Of both severities it takes the worse."""
    severities = (taker.get("severity", failure["severity"]), failure["severity"])
    counted = {
        **taker,
        counter: min(taker.get(counter, 1) + failure["occurrences"], MOST - 1),
        "last_seen": max(taker.get("last_seen", ""), failure["last_seen"]),
        "severity": min(severities, key=severity_rank),
    }
    if turns:
        # Which other turns the entry blocks; the storage keeps them, however many there are.
        known = (turn for turn in taker.get("turns") or () if turn not in turns)
        counted["turns"] = [*known, *turns]
    return counted


def sample_of(failure: Entry) -> Sample:
    return cast(Sample, _fields_of(Sample, failure))


def _fields_of(kind: type, failure: Entry) -> dict[str, Any]:
    """The keys of the TypedDict `kind` for which the failure has a value."""
    found = {name: failure.get(name) for name in kind.__annotations__}
    return {name: value for name, value in found.items() if value is not None}


def _small_sample(failure: Entry) -> Sample:
    """A merged failure's sample is short, so that a merged entry stays within bounds."""
    sample = sample_of(failure)
    for name in ("error_message", "traceback"):
        if len(text := failure[name] or "") > _MERGED_TEXT:
            sample[name] = text[:_MERGED_TEXT] + "[... whole in the error log]"
    if len(str(sample.get("context", ""))) > _MERGED_TEXT:
        sample["context"] = {"...": "[whole in the error log]"}
    return sample


def _merge(rows: list[MergedFailure], failure: Entry, turns: list[int]) -> list[MergedFailure]:
    for number, row in enumerate(rows):
        if row.get("fingerprint") == failure["fingerprint"]:
            again = cast(MergedFailure, _counted(row, failure, turns))
            if "sample" in row:
                again["sample"] = _small_sample(failure)
            return [*rows[:number], again, *rows[number + 1 :]]
    if len(rows) >= MERGED_ROWS:
        # The last row counts all further ones; each is whole in the error log.
        if rows[-1].get("fingerprint"):
            rows = [*rows, {"fingerprint": "", "error_type": "(others)", "count": 0}]
        return [*rows[:-1], cast(MergedFailure, _counted(rows[-1], failure, turns))]
    fields = {**_fields_of(MergedFailure, failure), "turns": turns}
    new = cast(MergedFailure, {**fields, "count": failure["occurrences"]})
    if len(rows) < MERGED_WITH_SAMPLE:
        new["sample"] = _small_sample(failure)
    return [*rows, new]
