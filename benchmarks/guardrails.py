"""What the guardrails cost and find: rules in a text, words in disguise, a turn without any check.

    python benchmarks/guardrails.py [--rules N] [--chars N] [--turns N] [--text PATH ...]

Figures in ms; a text is repeated until it is long enough. `--text`: innocent text, on which the
200 rules of `guardrails_rules.txt` should find nothing in disguise: a file, a folder with .rst,
.md and .txt files, or questions and paragraphs in SQuAD's format (.json).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import string
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from types import SimpleNamespace
from typing import Any

from unified_flow.config.tables import GuardrailSettings
from unified_flow.guardrails.guardrails import open_store
from unified_flow.guardrails.matcher import Matcher, Rule
from unified_flow.guardrails.user_rules import UserRules
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

ENGLISH = "The quick brown fox jumps over the lazy dog, and then it takes a rest by the river. "
LOOK_ALIKE = str.maketrans("eo", "\u0435\u043e")  # Cyrillic
LETTERS = "abcdefg013@$éâасеорх*.-   "
TEXTS = {
    "English": ENGLISH,
    "French": "Voilà un été où les élèves préfèrent la forêt, et déjà l'automne s'annonce ici. ",
    "Russian": "Съешь ещё этих мягких французских булок, да выпей же чаю, и приходи завтра. ",
    "Chinese": "机器人操作系统的话题和服务有什么区别。请用简单的语言解释一下。",
    "digits for letters": ENGLISH.replace("e", "3").replace("o", "0"),
    "look-alike letters": ENGLISH.translate(LOOK_ALIKE),
    "spaced letters": "a b c d e f g h ",
    "stretched letters": "sooo goooood ",
    "signs": "@$!|",
    "Greek": "\u0397 γρήγορη αλεπού πηδάει πάνω από τον τεμπέλη σκύλο και μετά ξεκουράζεται. ",
    "one Greek letter": "\u03b1",
    "U+FDFA": "\ufdfa",
    "euro signs": "€",
    "partly spaced letters": "s.p.am ",
    "masked letters": "f*ck ",
    "capitals within words": "BuyNow ",
    "marks": "Tôi không thể tin được điều này, thật là tuyệt vời. ",
    "blanks": "a  b ",
    "a stroke through": "s\u0338",
    "zero width": "\u200b",
    "right to left": "\u202e",
    "regional letters": "\U0001f1f8",
    "bars": "| ",
    "letters of chance": "".join(random.Random(2).choices(LETTERS, k=10_000)),
}
FORMS = Path(__file__).parents[1] / "tests/unit/guardrails/disguised_forms.json"
# Whatever is in a text, it takes at most so many times what plain English takes.
MOST_TIMES = 8.0
# A turn without checks waits for one look into the database, in a thread of its own.
MOST_LOOKS = 4.0


def word(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_lowercase, k=chance.randint(4, 10)))


def rules(count: int) -> list[Rule]:
    """Seven keywords to three phrases, of random letters: none is in the texts."""
    chance = random.Random(1)
    return [
        Rule("keyword", word(chance))
        if chance.random() < 0.7
        else Rule("phrase", f"{word(chance)} {word(chance)}")
        for _ in range(count)
    ]


def best(run: Callable[[], object], times: int = 15) -> float:
    """Processor time, the least of several runs: what else the machine does only adds."""
    took = []
    for _ in range(times):
        started = process_time()
        run()
        took.append((process_time() - started) * 1000)
    return min(took)


def matching(count: int, chars: int) -> None:
    made = rules(count)
    started = perf_counter()
    matcher = Matcher(made)
    print(f"building {count:,} rules{'':<24} {(perf_counter() - started) * 1000:8.1f} ms, once")
    plain: float | None = None
    for name, text in TEXTS.items():
        whole = (text * (chars // len(text) + 1))[:chars]
        matcher.matches(whole)
        took = best(lambda t=whole: matcher.matches(t))
        plain = plain or took
        print(f"{chars:,} characters, {name:<24} {took:8.2f} ms, {took / plain:4.1f} times English")
        assert took < plain * MOST_TIMES


def rules_in_file() -> list[Rule]:
    lines = Path(__file__).with_name("guardrails_rules.txt").read_text().splitlines()
    return [Rule("phrase" if " " in line else "keyword", line) for line in lines]


def texts_in(path: Path) -> Iterator[str]:
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.suffix in {".rst", ".md", ".txt"}:
                yield file.read_text(encoding="utf-8")
    elif path.suffix == ".json":
        for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                yield paragraph["context"]
                yield from (each["question"] for each in paragraph["qas"])
    else:
        yield path.read_text(encoding="utf-8")


def disguises(paths: list[Path]) -> None:
    """How many disguised forms are found, and how many sentences only seem to hold one."""
    groups = json.loads(FORMS.read_text(encoding="utf-8")).values()
    forms = [(rule, form) for group in groups for rule, form in group]
    matcher = Matcher(Rule("keyword", rule) for rule in dict(forms))
    found = sum([m.rule.text for m in matcher.matches(form)] == [rule] for rule, form in forms)
    print(f"found of {len(forms)} disguised forms{'':<18} {found}")
    if not paths:
        return
    matcher = Matcher(rules_in_file())
    sentences = [
        sentence
        for path in paths
        for text in texts_in(path)
        for sentence in re.split(r"(?<=[.!?。])\s+|\n", text)
        if sentence.strip()
    ]
    hits = [(m.rule.text, each) for each in sentences for m in matcher.matches(each) if m.disguised]
    print(f"hits by disguise in {len(sentences):,} innocent sentences  {len(hits)}")
    for rule, sentence in hits:
        print(f"  {rule}: {sentence}")


def unchecked_turn(turns: int) -> None:
    """What a turn waits for its guardrails if its user has no rules and others have."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        store = open_store(home, GuardrailSettings())
        more = tuple(rule.text for rule in rules(1000))
        store.change("somebody else", lambda r: UserRules(user_id=r.user_id, flagged_keywords=more))
        guardrails = wire(home).guardrails
        turn: Any = SimpleNamespace(turn=Turn(user_id="nobody", question="What is a topic?"))

        async def run() -> list[float]:
            took = []
            for _ in range(turns):
                started = perf_counter()
                assert await guardrails.admits(turn)
                assert await guardrails.releases(turn, "A bus.")
                took.append((perf_counter() - started) * 1000)
            await guardrails.aclose()
            return took

        took = asyncio.run(run())
        look = best(lambda: store.version("nobody"), turns)
        store.close()
    print(
        f"a turn of a user without rules: p50 {statistics.median(took):.2f} ms, "
        f"least {min(took):.2f} ms more (below 0.5), {min(took) / look:.1f} times one look"
    )
    assert min(took) < look * MOST_LOOKS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rules", type=int, default=10_000)
    parser.add_argument("--chars", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--text", type=Path, nargs="+", default=[], metavar="PATH")
    options = parser.parse_args()
    disguises(options.text)
    matching(options.rules, options.chars)
    unchecked_turn(options.turns)


if __name__ == "__main__":
    main()
