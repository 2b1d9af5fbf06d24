"""Lines of an evaluation's files that somebody or a disk has damaged: they count for nothing."""

from __future__ import annotations

from pathlib import Path

from unified_flow.evaluation.answers import EvaluatedAnswer
from unified_flow.evaluation.runs import Run, Spec, load

SPEC = Spec(
    dataset="set", dataset_digest="d", sample=None, seed=1, unanswerable=0.0, model="m", phases={},
    config_digest="c",
)  # fmt: skip
GOOD = EvaluatedAnswer(
    id="1", question="Who?", answers=["Ada"], unanswerable=False, status="answered"
)


def test_a_result_that_lacks_something_is_asked_again(tmp_path: Path) -> None:
    with Run.open(tmp_path, "mine", SPEC) as run:
        run.add(GOOD)
    with (tmp_path / "mine/results.jsonl").open("a") as file:
        file.write('{"id": "2"}\n{"question": "Who?"}\n')
    assert load(tmp_path, "mine")[1] == {"1": GOOD}
