"""Lines of an evaluation's files that somebody or a disk has damaged: they count for nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unified_flow.evaluation.answers import EvaluatedAnswer
from unified_flow.evaluation.cache import FILE, ReplyCache
from unified_flow.evaluation.runs import Run, Spec, load

SPEC = Spec(
    dataset="set", dataset_digest="d", sample=None, seed=1, unanswerable=0.0, model="m", phases={},
    config_digest="c",
)  # fmt: skip
GOOD = EvaluatedAnswer(
    id="1", question="Who?", answers=["Ada"], unanswerable=False, status="answered"
)
REPLY: dict[str, Any] = {
    "key": "a", "text": "{}", "prompt_tokens": 1, "completion_tokens": 1, "duration_ms": 1.0,
}  # fmt: skip


def test_a_result_that_lacks_something_is_asked_again(tmp_path: Path) -> None:
    with Run.open(tmp_path, "mine", SPEC) as run:
        run.add(GOOD)
    with (tmp_path / "mine/results.jsonl").open("a") as file:
        file.write('{"id": "2"}\n{"question": "Who?"}\n')
    assert load(tmp_path, "mine")[1] == {"1": GOOD}


def test_a_cached_reply_that_lacks_something_is_none(tmp_path: Path) -> None:
    lines = [REPLY, {"text": "no key"}, {"key": "b"}]
    (tmp_path / FILE).write_text("\n".join(map(json.dumps, lines)) + "\n")
    cache = ReplyCache(tmp_path)
    assert cache.get("a") == REPLY
    assert cache.get("b") is None
    cache.close()
