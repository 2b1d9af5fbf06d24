"""The target evaluation: how well a small language model answers, in the flow and plainly.

    python benchmarks/model.py DATASET WEIGHTS.gguf [--sample 100] [--unanswerable 0.4] [--home DIR]

The flow and the plain pipeline (four passages, one prompt) answer the same questions with the same
model over the same paragraphs, and are compared with a confidence interval. It takes hours on two
cores: stopped or killed, the same command goes on with the next question.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TARGETS = {
    "contained": (0.84, "at least"),
    "abstained": (0.925, "at least"),
    "abstained_falsely": (0.05, "at most"),
    "citations_support": (0.95, "at least"),
}
HOME = Path(tempfile.gettempdir()) / "unified-flow-evaluation"
SETTINGS = "timeout_s = 600.0\n"  # a call takes a minute on busy cores, and nobody waits


def evaluate(*args: str, home: Path) -> str:
    """The name of the run. 1: some questions failed, and count as failed."""
    command = [sys.executable, "-m", "unified_flow", "eval", "run", *args]
    done = subprocess.run(
        [*command, "--home", str(home), "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(done.returncode or 1)
    return str(json.loads(done.stdout)["run"])


def plainly(*args: str, home: Path) -> str:
    """The name of the run of `plain.py`."""
    command = [sys.executable, str(Path(__file__).with_name("plain.py")), *args]
    done = subprocess.run(
        [*command, "--home", str(home)], stdout=subprocess.PIPE, text=True, check=False
    )
    if not done.stdout:
        raise SystemExit(done.returncode or 1)
    return str(json.loads(done.stdout)["run"])


def said(*args: str, home: Path) -> str:
    command = [sys.executable, "-m", "unified_flow", "eval", *args, "--home", str(home)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def targets(found: dict[str, Any]) -> list[str]:
    lines = []
    for name, (bound, how) in TARGETS.items():
        each = found["measures"].get(name)
        if each is None:
            continue
        met = each["value"] >= bound if how == "at least" else each["value"] <= bound
        lines.append(
            f"  {name:<20}{each['value']:.3f} [{each['low']:.3f}, {each['high']:.3f}]"
            f"  {how} {bound:.3f}  {'ok' if met else 'MISSED'}"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--sample", default="100")
    parser.add_argument("--unanswerable", default="0.4")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--home", type=Path, default=HOME)
    args = parser.parse_args()
    for needed in (args.dataset, args.weights):
        if not needed.is_file():
            print(f"skipped: there is no file {needed}: both are needed")
            return 0
    settings = args.home / "unified_flow.toml"
    if not settings.exists():
        args.home.mkdir(parents=True, exist_ok=True)
        settings.write_text(SETTINGS)
    asked = [str(args.dataset), "--model", f"local:{args.weights.absolute()}"]
    asked += ["--sample", args.sample, "--unanswerable", args.unanswerable, "--seed", args.seed]
    flow = evaluate(*asked, home=args.home)
    print(said("show", flow, home=args.home))
    print("\n".join(targets(json.loads(said("show", flow, "--json", home=args.home)))), flush=True)
    plain = plainly(*asked, home=args.home)
    print(said("show", plain, home=args.home))
    print(said("compare", plain, flow, home=args.home))
    return 0


if __name__ == "__main__":
    sys.exit(main())
