"""Which planted secrets get out, and which look-alikes are taken for one.

    python benchmarks/redaction.py [--seed N] [--missed tuned|held]

Secrets are made by their issuers' rules from random bytes and stand in the forms in which programs
write them; look-alikes are what a person needs to read (`redaction_forms.py`). Each is put, one
intervention each, into one of the fields of an entry, and looked for in every file below the home:
queue, logs, what the notification command got, exports. By group and by half: the rules were made
with one half in view, and the other was written after them. Exits with 1 below 0.95.
"""

from __future__ import annotations

import argparse
import logging
import random
import re
import string
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redaction_forms as forms

from interventions import InterventionQueue, InterventionRequest
from interventions.times import utc_now
from interventions.view.description import as_json, as_markdown
from unified_flow.engine.telemetry.logs import logged

FLOOR = 0.95
BATCH = 60
UNLIMITED = 10**9
FIELDS = ("message", "traceback", "context", "sample", "extra", "note", "environment")
ALPHABETS = {
    "an": string.ascii_letters + string.digits,
    "pw": string.ascii_letters + string.digits,
    "sp": string.ascii_letters + string.digits + "!@#$%^*-_+=.",
    "hex": "0123456789abcdef",
    "up": string.ascii_uppercase + string.digits,
    "low": string.ascii_lowercase + string.digits,
    "dig": string.digits,
    "let": string.ascii_letters,
    "url": string.ascii_letters + string.digits + "-_",
    "b64": string.ascii_letters + string.digits + "+/",
}
RANDOM = re.compile(rf"\{{({'|'.join(ALPHABETS)})_?([0-9]+)\}}")


@dataclass(frozen=True)
class Case:
    """`secret`: what no file may hold; of a look-alike, None."""

    group: str
    value: Any
    secret: str | None
    held: bool = False


class Filler:
    """Random bytes in the place of the random parts of a form; the longest one is the secret."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.longest = ""

    def fill(self, form: Any) -> Any:
        if isinstance(form, dict):
            return {self.fill(key): self.fill(item) for key, item in form.items()}
        if isinstance(form, list):
            return [self.fill(item) for item in form]
        return RANDOM.sub(self._part, form) if isinstance(form, str) else form

    def _part(self, part: re.Match[str]) -> str:
        letters = ALPHABETS[part[1]]
        text = "".join(self._chance.choices(letters, k=int(part[2])))
        if part[1] in ("pw", "sp"):  # as a person chooses one: with a letter and a digit
            text = f"{self._chance.choice(string.ascii_letters)}{text[2:]}{len(text) % 10}"
        if len(text) > len(self.longest):
            self.longest = text
        return text


def cases(seed: int) -> list[Case]:
    chance = random.Random(seed)
    return [
        *_made(chance, "", forms.VALUES, forms.LOOK_ALIKE_VALUES),
        *_made(chance, "HELD_", (), ()),
    ]


def _made(
    chance: random.Random, half: str, values: tuple[Any, ...], harmless: tuple[Any, ...]
) -> Iterator[Case]:
    def case(group: str, form: Any, planted: bool = True) -> Case:
        filler = Filler(chance)
        value = filler.fill(form)
        return Case(group, value, filler.longest if planted else None, bool(half))

    def table(name: str) -> Any:
        return getattr(forms, half + name)

    for form in _items(table("ISSUERS"), "|"):
        yield case("issuers", f"request failed for {form} after 3 tries")
    for key in table("KEYS").split():
        yield case("keys", {"settings": {key: "{pw14}"}})
    for name in table("NAMES"):
        for syntax in table("SYNTAXES"):
            form = syntax.replace("{name}", name).replace("{{", "{").replace("}}", "}")
            yield case("assignments", form)
    for group, found in table("TEXTS").items():
        for form in _items(found, "---"):
            yield case(group, form)
    for group, found in table("LOOK_ALIKES").items():
        for form in _items(found, "|"):
            yield case(group, form, planted=False)
    for form in values:
        yield case("values", form)
    for form in harmless:
        yield case("values", form, planted=False)


def _items(forms: str, separator: str) -> list[str]:
    if separator == "---":
        return [form.strip("\n") for form in forms.split("\n---\n")]
    return [
        form.strip() for line in forms.splitlines() for form in line.split(" | ") if form.strip()
    ]


@dataclass
class Seen:
    """What left: every file below a home, and by number what an entry still holds."""

    files: str
    entries: dict[int, list[Any]]


def leave(batch: list[Case], home: Path) -> Seen:
    """One entry for each case, each in another field; everything that is written meanwhile."""
    told = home / "told.jsonl"
    home.joinpath("unified_flow.toml").write_text(
        f"[notifications]\ncommand = 'tee -a {told}'\n", encoding="utf-8"
    )
    queue = InterventionQueue(
        home, max_size=UNLIMITED, max_per_session=UNLIMITED, max_per_error_type=UNLIMITED
    )
    log = logging.getLogger("unified_flow")
    with logged(home):
        for number, case in enumerate(batch):
            text = case.value if isinstance(case.value, str) else None
            field = FIELDS[number % len(FIELDS)] if text else ("context", "extra")[number % 2]
            made = request(field, case.value, number)
            identity = queue.put(made).intervention_id
            assert identity is not None
            note = text if text and field == "note" else "mended"
            if text:
                log.error(text)
            if number % 3 == 0 or field == "note":
                queue.resolve(identity, note)
    exports = home / "exports"
    exports.mkdir()
    entries = {entry["turn_id"]: entry for entry in queue.entries()}
    for number, entry in entries.items():
        for form, render in (("json", as_json), ("md", as_markdown)):
            document = render(entry, [], queue.journal(entry["id"]), utc_now())
            exports.joinpath(f"{number}.{form}").write_text(document, encoding="utf-8")
    wait_for(told)
    files = [path.read_text("utf-8", "replace") for path in home.rglob("*") if path.is_file()]
    return Seen("\n".join(files), {n: list(parts_of(entry)) for n, entry in entries.items()})


def parts_of(value: Any) -> Iterator[Any]:
    """A value and all that is in it."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        yield from parts_of(item)


def wait_for(file: Path) -> None:
    """The notification is delivered by a process of its own."""
    until = time.monotonic() + 20
    while time.monotonic() < until and not (file.exists() and file.stat().st_size):
        time.sleep(0.05)
    assert file.exists(), "no notification was delivered"


def request(field: str, value: Any, number: int) -> InterventionRequest:
    given: dict[str, Any] = {
        "message": {"error_message": value},
        "traceback": {"traceback": value},
        "context": {"context": {"turn": {"given": [value]}}},
        "sample": {"latest_sample": {"given": value}},
        "extra": {"more": value},
        "note": {},
        "environment": {"environment": {"given": value}},
    }[field]
    return InterventionRequest(
        **{
            "type": "error",
            "severity": "critical" if number == 0 else "high",
            "phase": "planner",
            "error_type": f"Error{number}",
            "error_message": "failed",
            "session_id": f"s-{number}",
            "turn_id": number,
            **given,
        }
    )


def is_right(case: Case, number: int, seen: Seen) -> bool:
    if case.secret is not None:
        return not any(part in seen.files for part in windows(case.secret))
    if isinstance(case.value, str):
        return any(isinstance(part, str) and case.value in part for part in seen.entries[number])
    return any(part == case.value for part in seen.entries[number])


def windows(secret: str, size: int = 10) -> list[str]:
    """Half of a secret is one."""
    return [secret[at : at + size] for at in range(0, max(1, len(secret) - size + 1), 3)]


def measure(found: list[Case]) -> list[tuple[Case, bool]]:
    judged = []
    for first in range(0, len(found), BATCH):
        batch = found[first : first + BATCH]
        with tempfile.TemporaryDirectory() as place:
            seen = leave(batch, Path(place))
            judged += [(case, is_right(case, n, seen)) for n, case in enumerate(batch)]
    return judged


def share(right: list[bool]) -> str:
    return f"{sum(right) / len(right):.3f} {sum(right):>4} of {len(right):<4}" if right else "-"


def report(judged: list[tuple[Case, bool]], planted: bool) -> list[float]:
    """Prints a line for each group; gives back the shares of all, the tuned and the held half."""
    print(f"{'secrets: recall' if planted else 'look-alikes: left alone':<28}"
          f"{'all':<20}{'tuned':<20}held")  # fmt: skip
    groups: dict[str, list[tuple[Case, bool]]] = defaultdict(list)
    for case, right in judged:
        if (case.secret is not None) == planted:
            groups[case.group].append((case, right))
    rows = [*groups.items(), ("total", [one for group in groups.values() for one in group])]
    for name, group in rows:
        halves = [[right for case, right in group if case.held is held] for held in (False, True)]
        columns = [[right for _, right in group], *halves]
        print(f"  {name:<26}" + "".join(f"{share(column):<20}" for column in columns).rstrip())
    return [sum(column) / len(column) for column in columns]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--missed", choices=["tuned", "held"], help="print what was judged wrongly")
    args = parser.parse_args()
    judged = measure(cases(args.seed))
    if args.missed:
        for case, right in judged:
            if not right and case.held is (args.missed == "held"):
                print(f"{case.group}: {case.value!r}")
    shares = report(judged, planted=True) + report(judged, planted=False)
    tp = sum(right for case, right in judged if case.secret is not None)
    fp = sum(not right for case, right in judged if case.secret is None)
    print(f"precision {tp / (tp + fp):.3f}")
    return int(min(shares) < FLOOR)


if __name__ == "__main__":
    sys.exit(main())
