"""What the checks of a draft make of sixty faithful answers and of sixty spoilt ones.

    python benchmarks/drafts.py

The drafts are `tests/unit/grounding/drafts.toml`, with a model's verdict that approves of all.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.unit.grounding.drafts import WrittenDraft, faithful, spoilt
from unified_flow.phases.grounding.citations import REMOVED

FAITHFUL = ("accepted", "with its source", "supported", "not checked")
SPOILT = ("sent back", "number dropped", "not checked", "supported")


def of_faithful(written: WrittenDraft) -> dict[str, bool]:
    draft, verdict = written.judged()
    cited = {citation.source for citation in draft.citations}
    return {
        "accepted": verdict.decision == "APPROVE",
        "with its source": cited == {f"docs/p{place}.md:1" for place in written.places},
        "supported": verdict.checks.claims_supported is True,
        "not checked": verdict.checks.claims_supported == "not checked",
    }


def of_spoilt(written: WrittenDraft) -> dict[str, bool]:
    draft, verdict = written.judged()
    dropped = draft.checklist.get(REMOVED) is False
    return {
        "sent back": verdict.decision == "REVISE",
        "number dropped": dropped,
        "not checked": verdict.checks.claims_supported == "not checked",
        # Without the number of a passage that was not shown, the sentence is true.
        "supported": verdict.checks.claims_supported is True and not dropped,
    }


def table(
    title: str, columns: Iterable[str], found: Iterable[tuple[str, dict[str, bool]]]
) -> list[str]:
    counts: dict[str, Counter[str]] = {}
    for kind, checks in found:
        for row in (kind, "all"):
            counts.setdefault(row, Counter())["of"] += 1
            counts[row].update(name for name, holds in checks.items() if holds)
    lines = [f"| {title} | of | {' | '.join(columns)} |", "|---" * (2 + len(list(columns))) + "|"]
    for row in [*sorted(counts.keys() - {"all"}), "all"]:
        cells = [str(counts[row][name]) for name in ("of", *columns)]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines


def main() -> int:
    good = [(each.kind, of_faithful(each)) for each in faithful()]
    bad = [(each.kind, of_spoilt(each)) for each in spoilt()]
    print("\n".join([*table("faithful", FAITHFUL, good), "", *table("spoilt", SPOILT, bad)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
