"""The query language of `list`, `history` and the monitor.

    sev:critical phase:planner tool:x type:captcha is:open age:>1h session:abc "some text"

Terms are joined by "and"; `-` before a term means not; several values are joined by a comma. Text
that is no term is looked for in the message and the other things that are shown. What a term says
of a failure may be true of any that the entry holds: its own, or one merged into it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, cast

from interventions.entry import (
    SEVERITIES,
    TYPES,
    Entry,
    fingerprints,
    is_open,
    is_snoozed,
    priority,
    short_id,
    turns_of,
)
from interventions.errors import QueryError
from interventions.times import from_text, parse_duration

# The fields in which a text is looked for: those of a term, and those of a text that is none.
_HELD_IN = {name: name for name in ("phase", "tool", "owner")}
_HELD_IN |= {"error": "error_type", "category": "error_category"}
_HELD_IN |= {"session": "session_id", "request": "request_id"}
_SHOWN = [*_HELD_IN.values(), "id", "error_message", "culprit", "resolution"]
_ALIASES = {"severity": "sev", "priority": "prio", "turn_id": "turn", "fp": "fingerprint"}
_ALIASES |= {"occurrences": "count", **{field: term for term, field in _HELD_IN.items()}}
# Compiled when it is needed: most lists have no query.
_WRITTEN = r'(-?)(?:([a-z_]+)([:=]))?("(?:[^"\\]|\\.)*"?|\S*)'
_Compare = Callable[[Any, Any], bool]
_COMPARISONS: dict[str, _Compare] = {">=": operator.ge, "<=": operator.le}
_COMPARISONS |= {">": operator.gt, "<": operator.lt, "=": operator.eq}

Test = Callable[[Entry, datetime], bool]

_STATES: dict[str, Test] = {
    "open": lambda entry, now: is_open(entry),
    "closed": lambda entry, now: not is_open(entry),
    "resolved": lambda entry, now: bool(entry.get("resolved_at")),
    "dismissed": lambda entry, now: bool(entry.get("dismissed_at")),
    "snoozed": is_snoozed,
    "regression": lambda entry, now: any(one.get("regression_of") for one in _failures(entry)),
    "merged": lambda entry, now: bool(entry["merged"]),
    "assigned": lambda entry, now: bool(entry.get("owner")),
    "superseded": lambda entry, now: bool(entry.get("superseded")),
    "any": lambda entry, now: True,
}
# They say nothing of open or closed.
STATELESS = frozenset({"regression", "merged", "assigned", "superseded"})


class Query(NamedTuple):
    """`matches` is pure; `names_state` says whether an `is:` term chose which states are meant.
    `remarks` say what was taken for text and may be meant otherwise."""

    text: str
    tests: tuple[Test, ...]
    names_state: bool
    remarks: tuple[str, ...] = ()

    def matches(self, entry: Entry, now: datetime) -> bool:
        return all(test(entry, now) for test in self.tests)

    def select(self, entries: list[Entry], now: datetime) -> list[Entry]:
        """The entries that match; open ones only, unless the query itself speaks of states."""
        meant = entries if self.names_state else filter(is_open, entries)
        return [entry for entry in meant if self.matches(entry, now)]


def parse(text: str) -> Query:
    """Raises QueryError for a term that cannot be meant, such as `sev:purple` or `age:>soon`."""
    tests, remarks = list[Test](), list[str]()
    names_state = False
    for found in re.finditer(_WRITTEN, text, re.IGNORECASE) if text else ():
        negated, name, sign, value = found.groups("")
        key = _ALIASES.get(name.lower(), name.lower())
        if sign and key in _TERMS:
            values = _values(key, name, sign, value)
            test = _any_of(key, f"{name}:{value}", values)
            names_state |= key == "is" and not negated and not STATELESS.issuperset(values)
        elif wanted := f"{name}{sign}{_unquoted(value)}":
            test = _holds(_SHOWN, wanted)
            if negated and value.startswith("-"):
                hint = f'to look for it as text: "-{value}"'
                raise QueryError(f"-{value} is an option, not a term", hint=hint)
            if sign == ":" and value and not value.startswith("/"):
                _refuse_near_miss(name, value)
                remarks.append(f"{name}: is no term, so {wanted!r} is looked for as text")
        else:
            continue
        tests.append(partial(_is_not, test) if negated else test)
    return Query(text, tuple(tests), names_state, tuple(remarks))


def _values(key: str, name: str, sign: str, value: str) -> list[str]:
    if sign == "=":
        hint = f'did you mean {name}:{value} ? To look for it as text: "{name}={value}"'
        raise QueryError(f"{name}={value} is no term", hint=hint)
    values = list(filter(None, [_unquoted(value)] if value.startswith('"') else value.split(",")))
    if not values:
        example = _EXAMPLES.get(key, f"{name}:x")
        raise QueryError(f"{name}: has no value", hint=f"for example {example}")
    return values


def _any_of(key: str, term: str, values: Iterable[str]) -> Test:
    try:
        tests = [_TERMS[key](value) for value in values]
    except ValueError as error:
        raise QueryError(f"{term} says nothing", hint=str(error)) from error
    return lambda entry, now: any(test(entry, now) for test in tests)


_EXAMPLES = {"age": "age:>1h, age:<30m, age:>2d", "is": "is:snoozed", "sev": "sev:critical"}
_EXAMPLES |= {"count": "count:>10", "prio": "prio:<3"}


def _failures(entry: Entry) -> list[Mapping[str, Any]]:
    """The entry as its own failure, then as far as they are known: the latest, and the others."""
    rows = entry["merged"]
    samples = (entry.get("latest_sample"), *(row.get("sample") for row in rows))
    return cast(list[Mapping[str, Any]], [entry, *rows, *filter(None, samples)])


def _holds(fields: Iterable[str], wanted: str) -> Test:
    wanted = wanted.lower()
    return lambda entry, now: any(
        wanted in str(one.get(field) or "").lower() for one in _failures(entry) for field in fields
    )


def _is_one_of(field: str, allowed: tuple[str, ...], value: str) -> Test:
    """The value may be shortened: `sev:crit`."""
    wanted = [name for name in allowed if name.startswith(value.lower())]
    if not wanted:
        raise ValueError(f"one of: {', '.join(allowed)}")
    return lambda entry, now: any(one.get(field) in wanted for one in _failures(entry))


def _state(value: str) -> Test:
    if value.lower() not in _STATES:
        raise ValueError(f"one of: {', '.join(_STATES)}")
    return _STATES[value.lower()]


def _turn(value: str) -> Test:
    if not value.isdecimal() or len(value) > 19:
        raise ValueError("for example turn:7")
    number = int(value)
    return lambda entry, now: (
        number in turns_of(entry) or any(one.get("turn_id") == number for one in _failures(entry))
    )


def _is_not(test: Test, entry: Entry, now: datetime) -> bool:
    return not test(entry, now)


def _begins(names: Callable[[Entry], Iterable[str]], value: str) -> Test:
    return lambda entry, now: any(name.startswith(value) for name in names(entry))


def _compared(
    of: Callable[[Entry, datetime], Any],
    read: Callable[[str], Any],
    alone: str,
    key: str,
    value: str,
) -> Test:
    """`of` the entry, with what is `read` from the value; a value `alone` has this sign."""
    sign = next((each for each in _COMPARISONS if value.startswith(each)), "")
    wanted, compare = read(value.removeprefix(sign)), _COMPARISONS[sign or alone]
    if wanted is None:
        raise ValueError(f"for example {_EXAMPLES[key]}")
    return lambda entry, now: compare(of(entry, now), wanted)


def _number(text: str) -> int | None:
    digits = text.lower().removeprefix("p")
    return int(digits) if digits.isdecimal() and len(digits) <= 9 else None


_TERMS: dict[str, Callable[[str], Test]] = {
    "sev": partial(_is_one_of, "severity", SEVERITIES),
    "type": partial(_is_one_of, "type", TYPES),
    "is": _state,
    "age": partial(  # alone: at least that old
        _compared, lambda e, now: now - from_text(e["created_at"]), parse_duration, ">=", "age"
    ),
    "count": partial(_compared, lambda entry, now: entry["occurrences"], _number, "=", "count"),
    "prio": partial(_compared, lambda entry, now: priority(entry), _number, "=", "prio"),
    "turn": _turn,
    "id": partial(_begins, lambda entry: (entry["id"], short_id(entry["id"]))),
    "fingerprint": partial(_begins, fingerprints),
    **{name: partial(_holds, (field,)) for name, field in _HELD_IN.items()},
}
KEYS = tuple(_TERMS)


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    body = value[1:-1] if len(value) > 1 and value.endswith('"') else value[1:]
    return re.sub(r"\\(.)", r"\1", body)


def _refuse_near_miss(name: str, value: str) -> None:
    """`sevv:critical` would silently find nothing; `TypeError:` and `https://x` are text."""
    from difflib import get_close_matches  # late: most queries have no such name

    near = get_close_matches(name.lower(), (*KEYS, *_ALIASES), n=1, cutoff=0.75)
    if near:
        hint = f'did you mean {near[0]}: ? To look for it as text: "{name}:{value}"'
        raise QueryError(f"{name}: is no term of a query", hint=hint)
