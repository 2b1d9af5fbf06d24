"""The query language of `list`, `history` and the monitor.

    sev:critical phase:planner tool:x type:captcha is:open age:>1h session:abc "some text"

Terms are joined by "and"; `-` before a term means not; several values are joined by a comma. Text
that is no term is looked for in the message and the other things that are shown. What a term says
of a failure may be true of any that the entry holds: its own, or one merged into it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
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

_ALIASES = {
    "severity": "sev",
    "error_type": "error",
    "fp": "fingerprint",
    "session_id": "session",
    "turn_id": "turn",
    "request_id": "request",
    "priority": "prio",
    "error_category": "category",
    "occurrences": "count",
}
_FIELDS = {
    "phase": "phase",
    "tool": "tool",
    "error": "error_type",
    "category": "error_category",
    "session": "session_id",
    "turn": "turn_id",
    "request": "request_id",
    "owner": "owner",
}
_SHOWN = (
    "id",
    "error_message",
    "culprit",
    "resolution",
    "error_type",
    "phase",
    "tool",
    "session_id",
)
KEYS = ("sev", "type", "is", "age", "count", "prio", "id", "fingerprint", *_FIELDS)

_TERM = re.compile(r'(-?)(?:([a-z_]+)([:=]))?("(?:[^"\\]|\\.)*"?|\S*)', re.IGNORECASE)
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}

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
IS_WORDS = tuple(_STATES)
# They say nothing of open or closed.
STATELESS = ("regression", "merged", "assigned", "superseded")


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
        """Those that match; open ones only, unless the query itself speaks of states."""
        return [
            entry
            for entry in entries
            if (self.names_state or is_open(entry)) and self.matches(entry, now)
        ]


def parse(text: str) -> Query:
    """Raises QueryError for a term that cannot be meant, such as `sev:purple` or `age:>soon`."""
    tests, remarks = [], []
    names_state = False
    for found in (term for term in _TERM.finditer(text) if term[0]):
        test, states, remark = _test(found)
        names_state = names_state or states
        remarks += [remark] if remark else []
        if test is not None:
            tests.append(test)
    return Query(text, tuple(tests), names_state, tuple(remarks))


def _test(found: re.Match[str]) -> tuple[Test | None, bool, str]:
    """The test, whether it says which states are meant, and a remark."""
    negated, name, sign, value = bool(found[1]), found[2] or "", found[3], found[4]
    key = _ALIASES.get(name.lower(), name.lower())
    if sign == "=" and key in KEYS:
        raise QueryError(
            f"{name}={value} is no term",
            hint=f'did you mean {name}:{value} ? To look for it as text: "{name}={value}"',
        )
    if sign == "=" or key not in KEYS:
        is_odd = sign == ":" and value and not value.startswith("/")
        if is_odd:
            _refuse_near_miss(name, value)
        if negated and value.startswith("-"):
            raise QueryError(
                f"-{value} is an option, not a term", hint=f'to look for it as text: "-{value}"'
            )
        text = f"{name}{sign or ''}{_unquoted(value)}"
        remark = f"{name}: is no term, so {text!r} is looked for as text" if is_odd else ""
        return (_not_if(negated, _contains(text)) if text else None), False, remark
    values = list(filter(None, [_unquoted(value)] if value.startswith('"') else value.split(",")))
    if not values:
        raise QueryError(
            f"{name}: has no value", hint=f"for example {_EXAMPLES.get(key, name + ':x')}"
        )
    alternatives = [_term(key, one) for one in values]

    def any_of(entry: Entry, now: datetime) -> bool:
        return any(test(entry, now) for test in alternatives)

    states = key == "is" and any(one not in STATELESS for one in values)
    return _not_if(negated, any_of), states and not negated, ""


_EXAMPLES = {"age": "age:>1h", "is": "is:snoozed", "sev": "sev:critical", "count": "count:>10"}


def _term(key: str, value: str) -> Test:
    if key == "sev":
        return _is_one_of("severity", value, SEVERITIES)
    if key == "type":
        return _is_one_of("type", value, TYPES)
    if key == "is":
        if value.lower() not in _STATES:
            raise QueryError(f"is:{value} means nothing", hint=f"is: one of {', '.join(IS_WORDS)}")
        return _STATES[value.lower()]
    if key == "age":
        return _age(value)
    if key == "count":
        return _number("count", value, lambda entry: entry["occurrences"])
    if key == "prio":
        return _number("prio", value.lower().removeprefix("p"), priority)
    if key == "turn":
        return _turn(value)
    if key == "id":
        return lambda entry, now: any(
            name.startswith(value) for name in (entry["id"], short_id(entry["id"]))
        )
    if key == "fingerprint":
        return lambda entry, now: any(own.startswith(value) for own in fingerprints(entry))
    wanted, field = value.lower(), _FIELDS[key]
    return lambda entry, now: any(_has(one, field, wanted) for one in _failures(entry))


def _failures(entry: Entry) -> list[Mapping[str, Any]]:
    """The entry as its own failure, then as far as they are known: the latest, and the others."""
    rows = entry["merged"]
    samples = (entry.get("latest_sample"), *(row.get("sample") for row in rows))
    return cast(list[Mapping[str, Any]], [entry, *rows, *filter(None, samples)])


def _has(failure: Mapping[str, Any], field: str, wanted: str) -> bool:
    return wanted in str(failure.get(field) or "").lower()


def _turn(value: str) -> Test:
    if not value.isdecimal() or len(value) > 19:
        raise QueryError(f"turn:{value} is no turn", hint="for example turn:7")
    number = int(value)
    return lambda entry, now: (
        number in turns_of(entry) or any(one.get("turn_id") == number for one in _failures(entry))
    )


def _is_one_of(field: str, value: str, allowed: tuple[str, ...]) -> Test:
    """The value may be shortened: `sev:crit`."""
    wanted = [name for name in allowed if name.startswith(value.lower())]
    if not wanted:
        raise QueryError(f"{value!r} is no {field}", hint=f"one of: {', '.join(allowed)}")
    return lambda entry, now: any(one.get(field) in wanted for one in _failures(entry))


def _age(value: str) -> Test:
    sign, rest = _compared(value)
    duration = parse_duration(rest)
    if duration is None:
        raise QueryError(f"age:{value} is no age", hint="for example age:>1h, age:<30m, age:>2d")
    # "age:1h" alone means at least that old.
    compare = _COMPARISONS[sign or ">="]

    def test(entry: Entry, now: datetime) -> bool:
        age: timedelta = now - from_text(entry["created_at"])
        return compare(age.total_seconds(), duration.total_seconds())

    return test


def _number(name: str, value: str, of: Callable[[Entry], int]) -> Test:
    sign, rest = _compared(value)
    if not rest.isdecimal() or len(rest) > 9:
        raise QueryError(f"{name}:{value} is no number", hint=f"for example {name}:>1")
    compare, number = _COMPARISONS[sign or "="], int(rest)
    return lambda entry, now: compare(of(entry), number)


def _compared(value: str) -> tuple[str, str]:
    sign = next((each for each in _COMPARISONS if value.startswith(each)), "")
    return sign, value.removeprefix(sign)


def _contains(text: str) -> Test:
    wanted = text.lower()
    return lambda entry, now: any(
        _has(failure, name, wanted) for failure in _failures(entry) for name in _SHOWN
    )


def _not_if(negated: bool, test: Test) -> Test:
    return (lambda entry, now: not test(entry, now)) if negated else test


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
        raise QueryError(
            f"{name}: is no term of a query",
            hint=f'did you mean {near[0]}: ? To look for it as text: "{name}:{value}"',
        )
