"""One more occurrence on an existing entry, without losing which failure it was."""

from __future__ import annotations

from typing import cast

from interventions.entry import Entry, MergedFailure, Sample, severity_rank

# Merged fingerprints that keep a sample, and those that keep at least their name and count.
MERGED_WITH_SAMPLE = 10
MERGED_ROWS = 100
MAX_TURNS = 1000
_MERGED_TEXT = 2_000


def count_onto(entry: Entry, failure: Entry) -> Entry:
    """The entry with the failure counted: as its latest sample, or as a row of `merged`.

    The entry takes the worse of both severities: a flood must not hide somebody's critical error.
    """
    changed: Entry = {
        **entry,
        "occurrences": entry["occurrences"] + failure["occurrences"],
        "last_seen": max(entry["last_seen"], failure["last_seen"]),
        "severity": min(entry["severity"], failure["severity"], key=severity_rank),
    }
    turn = failure["turn_id"]
    if turn and turn != entry["turn_id"]:
        # Which other turns wait for the same fix, the latest last.
        others = [known for known in entry.get("turns") or [] if known != turn]
        changed["turns"] = [*others, turn][-MAX_TURNS:]
    if failure["fingerprint"] == entry["fingerprint"]:
        changed["latest_sample"] = sample_of(failure)
    else:
        changed["merged"] = _merge(entry.get("merged") or [], failure)
    return changed


def sample_of(failure: Entry) -> Sample:
    found = {name: failure.get(name) for name in Sample.__annotations__}
    return cast(Sample, {name: value for name, value in found.items() if value is not None})


def stands_at(entry: Entry) -> Entry | Sample:
    """The failure at which the entry's own turn stands: the latest of that turn, which after a
    retry may be another one than the entry's. Fields of a sample, and `type`."""
    found = [_sample(entry["type"], entry.get("latest_sample"))]
    found += [_sample(row.get("type", ""), row.get("sample")) for row in entry["merged"]]
    again = [one for one in found if one.get("turn_id") == entry["turn_id"] != 0]
    if not again:
        return entry
    return max(again, key=lambda sample: str(sample.get("created_at")))


def _sample(kind: str, sample: Sample | None) -> Sample:
    return {**sample, "type": kind} if isinstance(sample, dict) else {}


def _small_sample(failure: Entry) -> Sample:
    """A merged failure's sample is short, so that a merged entry stays within bounds."""
    sample = sample_of(failure)
    if (traceback := sample.get("traceback")) is not None:
        sample["traceback"] = _short(traceback)
    sample["error_message"] = _short(failure["error_message"])
    if len(str(sample.get("context", ""))) > _MERGED_TEXT:
        sample["context"] = {"...": "[whole in the error log]"}
    return sample


def _short(text: str) -> str:
    cut = len(text) > _MERGED_TEXT
    return text[:_MERGED_TEXT] + "[... whole in the error log]" if cut else text


def _merge(rows: list[MergedFailure], failure: Entry) -> list[MergedFailure]:
    seen, count = failure["last_seen"], failure["occurrences"]
    for number, row in enumerate(rows):
        if row.get("fingerprint") == failure["fingerprint"]:
            again: MergedFailure = {**row, "count": row.get("count", 1) + count, "last_seen": seen}
            if "sample" in row:
                again["sample"] = _small_sample(failure)
            return [*rows[:number], again, *rows[number + 1 :]]
    if len(rows) >= MERGED_ROWS:
        # The last row stands for all further ones; each is whole in the error log.
        rest: MergedFailure = {**rows[-1], "last_seen": seen}
        if rest.get("fingerprint"):
            rest = {"fingerprint": "", "error_type": "(others)", "count": 0, "last_seen": seen}
            rows = [*rows, rest]
        return [*rows[:-1], {**rest, "count": rest.get("count", 0) + count}]
    new: MergedFailure = {
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
    if regression_of := failure.get("regression_of"):
        new["regression_of"] = regression_of
    if len(rows) < MERGED_WITH_SAMPLE:
        new["sample"] = _small_sample(failure)
    return [*rows, new]
