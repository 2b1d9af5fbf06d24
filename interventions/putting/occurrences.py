"""One more occurrence on an existing entry, without losing which failure it was."""

from __future__ import annotations

from typing import Any

from interventions.entry import Entry, severity_rank

# Merged fingerprints that keep a sample, and those that keep at least their name and count.
MERGED_WITH_SAMPLE = 10
MERGED_ROWS = 100
MAX_TURNS = 1000
_MERGED_TEXT = 2_000

_SAMPLE_FIELDS = (
    "id",
    "created_at",
    "type",
    "severity",
    "phase",
    "tool",
    "error_type",
    "error_message",
    "error_category",
    "session_id",
    "turn_id",
    "request_id",
    "traceback",
    "context",
)


def count_onto(entry: Entry, failure: Entry) -> Entry:
    """The entry with the failure counted: as its latest sample, or as a row of `merged`.

    The entry takes the worse of both severities: a flood must not hide somebody's critical error.
    """
    changed = {
        **entry,
        "occurrences": entry["occurrences"] + failure["occurrences"],
        "last_seen": max(entry["last_seen"], failure["last_seen"]),
        "severity": min(entry["severity"], failure["severity"], key=severity_rank),
        **_turns(entry, failure),
    }
    if failure["fingerprint"] == entry["fingerprint"]:
        changed["latest_sample"] = sample_of(failure)
    else:
        changed["merged"] = _merge(entry.get("merged") or [], failure)
    return changed


def _turns(entry: Entry, failure: Entry) -> dict[str, Any]:
    """Which other turns wait for the same fix, the latest last."""
    turn = failure.get("turn_id")
    if not turn or turn == entry["turn_id"]:
        return {}
    others = [known for known in entry.get("turns") or [] if known != turn]
    return {"turns": [*others, turn][-MAX_TURNS:]}


def sample_of(failure: Entry) -> dict[str, Any]:
    """The whole failure as it was; `id` finds its line in the error log."""
    return {name: failure[name] for name in _SAMPLE_FIELDS if failure.get(name) is not None}


def stands_at(entry: Entry) -> dict[str, Any]:
    """The failure at which the entry's own turn stands: the latest of that turn, which after a
    retry may be another one than the entry's. Fields of a sample, and `type`."""
    found = [_sample(entry["type"], entry.get("latest_sample"))]
    found += [_sample(row.get("type"), row.get("sample")) for row in entry["merged"]]
    again = [one for one in found if one.get("turn_id") == entry["turn_id"] != 0]
    if not again:
        return entry
    return max(again, key=lambda sample: str(sample.get("created_at")))


def _sample(kind: Any, sample: Any) -> dict[str, Any]:
    return {**sample, "type": kind} if isinstance(sample, dict) else {}


def _small_sample(failure: Entry) -> dict[str, Any]:
    """A merged failure's sample is short, so that a merged entry stays within bounds."""
    sample = sample_of(failure)
    for name in ("traceback", "error_message"):
        if len(sample.get(name) or "") > _MERGED_TEXT:
            sample[name] = sample[name][:_MERGED_TEXT] + "[... whole in the error log]"
    if len(str(sample.get("context", ""))) > _MERGED_TEXT:
        sample["context"] = {"...": "[whole in the error log]"}
    return sample


def _merge(rows: list[dict[str, Any]], failure: Entry) -> list[dict[str, Any]]:
    seen, count = failure["last_seen"], failure["occurrences"]
    for number, row in enumerate(rows):
        if row.get("fingerprint") == failure["fingerprint"]:
            again = {**row, "count": row.get("count", 1) + count, "last_seen": seen}
            if "sample" in row:
                again["sample"] = _small_sample(failure)
            return [*rows[:number], again, *rows[number + 1 :]]
    if len(rows) >= MERGED_ROWS:
        # The last row stands for all further ones; each is whole in the error log.
        rest = {**rows[-1], "last_seen": seen}
        if rest.get("fingerprint"):
            rest = {"fingerprint": "", "error_type": "(others)", "count": 0, "last_seen": seen}
            rows = [*rows, rest]
        return [*rows[:-1], {**rest, "count": rest["count"] + count}]
    row = {
        "fingerprint": failure["fingerprint"],
        "type": failure["type"],
        "phase": failure["phase"],
        "tool": failure.get("tool"),
        "error_type": failure["error_type"],
        "severity": failure["severity"],
        "count": count,
        "first_seen": failure["first_seen"],
        "last_seen": seen,
    }
    if failure.get("regression_of"):
        row["regression_of"] = failure["regression_of"]
    if len(rows) < MERGED_WITH_SAMPLE:
        row["sample"] = _small_sample(failure)
    return [*rows, row]
