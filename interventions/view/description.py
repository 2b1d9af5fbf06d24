"""One entry in words, section by section, as plain text that is safe to show; and as JSON or
Markdown for somebody else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any

from interventions.entry import (
    Entry,
    MergedFailure,
    Resolution,
    Transition,
    is_open,
    latest_failure,
    priority,
    short_id,
    state_of,
    turn_context,
)
from interventions.plaintext import clean, one_line
from interventions.secrets.redaction import WHOLE, redact
from interventions.times import ago
from interventions.view.groups import other_failures, other_line
from interventions.view.ribbon import in_line, phases

TURNS_SHOWN = 12


# What a section is about, for a front end that lays sections out; titles are for people.
Kind = StrEnum(
    "Kind",
    "HEAD SUPERSEDED PHASES ERROR HINT REGRESSION KNOWN_FIXES WAITING OTHERS CHANGED QUESTION "
    "EVIDENCE INPUT TRACEBACK ENVIRONMENT TURN CONTEXT SAMPLE HISTORY COMMANDS",
)


@dataclass(frozen=True)
class Section:
    kind: Kind
    title: str
    lines: list[str]


def describe(
    entry: Entry,
    past: list[Entry],
    journal: list[Transition],
    now: datetime,
    *,
    resumer: bool = True,
    alike: Sequence[Entry] = (),
    changed: Sequence[str] = (),
) -> list[Section]:
    """A story: what happened, what helps, what waits for it, what it worked with, where it broke.

    `past` are earlier resolutions of the same failure, `alike` other open entries with it,
    `changed` what differs since; empty sections are left out. Without a `resumer` nothing can be
    retried. Whatever a section is made of, nothing in it commands a terminal."""
    turn = dict(turn_context(entry))
    # The note of what did not last is shown once: among the known fixes, else here.
    earlier, before, fixes = entry["regression_of"], "", "Known fixes"
    if earlier and any(other["id"] == earlier for other in past):
        fixes = f"Known fixes, of which {short_id(earlier)} did not last"
    elif earlier:
        note = one_line(entry["regression_note"] or "no note")
        before = f"it was resolved before, in {earlier}: {note}"
    sample = {**(entry["latest_sample"] or {}), "traceback": None}
    context = {name: v for name, v in entry["context"].items() if name not in ("turn", "hint")}
    held = [_other(other, now) for other in other_failures([entry])]
    ribbon, question = turn.pop("ribbon", None), clean(str(turn.pop("question", None) or ""))
    evidence, read = turn.pop("evidence", None), turn.pop("input", None)
    given = read if isinstance(read, dict) else {"input": read}
    made_by = {name: turn.pop(name, None) for name in ("model", "recipe", "recipe_digest")}
    sections: list[tuple[Kind, str, list[str]]] = [
        (Kind.HEAD, entry["id"], _head(entry, now)),
        (Kind.SUPERSEDED, "Superseded", [one_line(entry.get("superseded") or "")]),
        (Kind.PHASES, "Phases", [in_line(phases(ribbon))]),
        (Kind.ERROR, "Error", _error(entry)),
        (Kind.HINT, "Hint", _hint(entry)),
        (Kind.REGRESSION, "Regression", [before]),
        (Kind.KNOWN_FIXES, fixes, list(map(known_fix, past))),
        (Kind.WAITING, "Waiting for the same fix", _waiting(entry, alike)),
        (Kind.OTHERS, f"Other failures that it holds ({len(held)})", held),
        (Kind.CHANGED, "Changed since it stopped", [one_line(line) for line in changed]),
        (Kind.QUESTION, "Question", question.split("\n")),
        (Kind.EVIDENCE, "Evidence", _evidence(evidence)),
        (Kind.INPUT, "Input of the phase", _fields(given)),
        (Kind.TRACEBACK, "Traceback", (entry["traceback"] or "").split("\n")),
        (Kind.ENVIRONMENT, "Environment", _fields(made_by | entry["environment"])),
        (Kind.TURN, "Turn", _fields(turn)),
        (Kind.CONTEXT, "Context", _fields(context)),
        (Kind.SAMPLE, "Latest occurrence", _fields(sample)),
        (Kind.HISTORY, "History", [_transition(line, now) for line in journal]),
        (Kind.COMMANDS, "Go on with", commands(entry, resumer)),
    ]
    return [
        Section(kind, one_line(title), [clean(line) for line in lines])
        for kind, title, lines in sections
        if any(lines)
    ]


def where(entry: Entry) -> str:
    """The entry's session, and its turn unless its program has none."""
    turn = f", turn {entry['turn_id']}" if entry["turn_id"] else ""
    return f"session {entry['session_id']}{turn}"


def _head(entry: Entry, now: datetime) -> list[str]:
    who = f", assigned to {entry['owner']}" if entry["owner"] else ""
    tool, state = latest_failure(entry).get("tool"), state_of(entry, now)
    last: Resolution = entry["resolutions"][-1] if entry["resolutions"] else {}
    verified = bool(entry["resolved_at"] and last.get("verified"))
    closed = f"{state}{', verified' if verified else ''}: {entry['resolution']}"
    ended = last.get("turn_status", "") if verified else ""
    count, wakes_at = entry["occurrences"], entry["snoozed_until_occurrences"]
    lines = [
        f"{entry['severity']}, P{priority(entry)}, {entry['type']}, {state}{who}",
        f"phase {entry['phase']}" + (f", tool {tool}" if tool else ""),
        where(entry),
        f"since {ago(entry['created_at'], now)}",
        f"{count} times, the last {ago(entry['last_seen'], now)}" if count > 1 else "",
        f"snoozed until {ago(until, now)}" if (until := entry["snoozed_until"]) else "",
        f"snoozed until occurrence {wakes_at}" if wakes_at else "",
        closed if entry["resolution"] else "",
        f"after: the turn {'' if ended.startswith('failed') else 'is '}{ended}" if ended else "",
    ]
    return [one_line(line) for line in lines if line]


def _error(entry: Entry) -> list[str]:
    lines = f"{entry['error_type']}: {entry['error_message']}".split("\n")
    lines += [again] if (again := failed_since(entry)) else []
    facts = {"category": entry["error_category"], "at": entry["location"]}
    facts |= {"request": entry["request_id"], "trace": entry["context"].get("trace_id")}
    facts |= {"fingerprint": entry["fingerprint"]}
    return [*lines, ", ".join(f"{name} {one_line(fact)}" for name, fact in facts.items() if fact)]


def failed_since(entry: Entry) -> str:
    """`now: OSError: disk full`, if its turn has failed with another error since; else empty."""
    latest = latest_failure(entry)
    if all(latest.get(name) == entry.get(name) for name in ("error_type", "error_message")):
        return ""
    return one_line(f"now: {latest.get('error_type')}: {latest.get('error_message')}")


def _hint(entry: Entry) -> list[str]:
    """What the failure at which the turn stands now says about mending it."""
    context = latest_failure(entry).get("context")
    now = context.get("hint") if isinstance(context, dict) else None
    return clean(str(now or entry["context"].get("hint") or "")).split("\n")


def _waiting(entry: Entry, alike: Sequence[Entry]) -> list[str]:
    """The turns that the entry blocks beside its own, and other entries with the same failure."""
    counted = [f"it blocks turns {_spans(entry['turns'])} too"] if entry.get("turns") else []
    return counted + [f"{short_id(one['id'])}  {one_line(where(one))}" for one in alike]


def _evidence(searches: Any) -> list[str]:
    """Each search, and the score, source and chunk of each passage that it found; anything else as
    it is."""
    try:
        return [line for search in searches or () for line in _search_lines(search)]
    except (AttributeError, LookupError, TypeError, ValueError):
        return _fields({"evidence": searches})


def _search_lines(search: Mapping[str, Any]) -> Iterator[str]:
    yield one_line(f"{search.get('tool', '?')} {search.get('query') or ''}")
    for passage in search.get("passages") or ():
        source = one_line(str(passage.get("source") or "?"))
        yield f"{passage['score']:7.3f}  {source}  {one_line(str(passage.get('chunk_id', '?')))}"
    if not search.get("passages"):
        yield "  nothing found"


def _other(row: MergedFailure, now: datetime) -> str:
    known = row.get("turns") or []
    turns = f", turn{'s' if len(known) > 1 else ''} {_spans(known)}" if known else ""
    known_as = f"fingerprint {row['fingerprint']}, " if row.get("fingerprint") else ""
    last = ago(str(row.get("last_seen") or "?"), now)
    return f"{other_line(row)} ({known_as}last seen {last}{turns})"


def _spans(turns: list[int]) -> str:
    """`5, 7 to 90 and 12 more`: turns that follow each other are one span."""
    # What grows by one from turn to turn has the same distance to its place.
    numbered = groupby(enumerate(sorted(turns)), lambda placed: placed[1] - placed[0])
    spans = [[turn for _, turn in span] for _, span in numbered]
    shown, rest = spans[:TURNS_SHOWN], sum(map(len, spans[TURNS_SHOWN:]))
    words = [
        f"{span[0]} to {span[-1]}" if len(span) > 2 else ", ".join(map(str, span)) for span in shown
    ]
    return ", ".join(words) + (f" and {rest} more" if rest else "")


def _transition(line: Transition, now: datetime) -> str:
    after = line.get("after")
    note = (after.get("resolution") if isinstance(after, dict) else "") or ""
    return one_line(
        f"{ago(str(line.get('at')), now)} {line.get('action')} by {line.get('by')} "
        f"({line.get('via')} on {line.get('host')}) {note}"
    )


def _fields(values: Mapping[str, Any]) -> list[str]:
    """Those that say something, each with its name; what takes more lines is indented."""
    lines = []
    for name, value in values.items():
        if value is None or value in ("", [], {}):
            continue
        begins_below = isinstance(value, dict | list)
        first, *more = ["", *_lines_of(value)] if begins_below else _lines_of(value)
        lines += [f"{name}: {first}".rstrip(), *(f"  {line}" for line in more)]
    return lines


def _lines_of(value: Any) -> list[str]:
    """The lines of a list, with `- ` before the first one of each item. One within another is one
    line, for lists may be as deep as Python's stack."""
    if isinstance(value, dict):
        return _fields(value)
    if not isinstance(value, list):
        return str(value).split("\n")
    lines: list[str] = []
    for item in value:
        text = json.dumps(item, ensure_ascii=False) if isinstance(item, list) else item
        first, *more = _lines_of(text) or [""]
        lines += [f"- {first}", *(f"  {line}" for line in more)]
    return lines


def commands(entry: Entry, resumer: bool = True) -> list[str]:
    """The commands with which a person goes on, the most likely first."""
    short = short_id(entry["id"])
    if not is_open(entry):
        return [f"interventions reopen {short}", f"interventions similar {short}"]
    # What the turn waits for now: after an answer it may be leave to run a tool.
    now = latest_failure(entry)
    is_question = resumer and now.get("type") == "escalation"
    note = '"the answer" --retry' if is_question else '"what you mended"'
    words = [f"resolve {short} --note {note}"]
    if resumer and entry["turn_id"]:
        if now.get("type") == "permission" and now.get("tool"):
            words.append(f"retry {short} --grant once")
        words.append(f"retry {short}")
    words.append(f"snooze {short} --for 1d")
    words.append(f'dismiss {short} --note "why not"')
    words.append(f"export {short} --as markdown")
    return [f"interventions {each}" for each in words]


def known_fix(entry: Entry) -> str:
    """`a1b2c3: restarted the server (verified, ada, 2026-11-21)`: how it was resolved last, whether
    a resumed turn proved it, by whom and on which day."""
    resolved = [row for row in entry["resolutions"] if row.get("kind") == "resolved"]
    row: Resolution = resolved[-1] if resolved else {}
    proof = "verified" if row.get("verified") else "not verified"
    who, when = row.get("by", "somebody"), str(row.get("at", ""))[:10]
    how = f"{row.get('note', '')} ({', '.join(filter(None, (proof, who, when)))})"
    return one_line(f"{short_id(entry['id'])}: {how}")


def as_json(entry: Entry, past: list[Entry], journal: list[Transition], now: datetime) -> str:
    """The entry for somebody else: redacted again, for rules may have grown since."""
    document = {"intervention": entry, "similar": past, "journal": journal}
    return json.dumps(redact(document, WHOLE), ensure_ascii=False, indent=2)


def as_markdown(entry: Entry, past: list[Entry], journal: list[Transition], now: datetime) -> str:
    lines = []
    entry, past = redact([entry, past], WHOLE)
    for number, section in enumerate(describe(entry, past, journal, now)):
        if section.kind is Kind.COMMANDS:
            continue  # they are for this machine
        # Longer than any inside, so that the text cannot end its own block.
        fence = max(re.findall("~+", "\n".join(["~~", *section.lines])), key=len) + "~"
        lines += [f"{'#' if number == 0 else '##'} {section.title}", ""]
        lines += [f"{fence}text", *section.lines, fence, ""]
    return "\n".join(lines).rstrip()
