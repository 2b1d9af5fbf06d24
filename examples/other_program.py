"""Failures of a program that answers no questions, in the queue: python examples/other_program.py

`interventions list` shows them afterwards, `monitor` live.
"""

import json

from interventions import intervene

ORDERS = [
    '{"id": 1, "pieces": 3}',
    '{"id": 2, "pieces": "many"}',
    '{"id": 3',
    '{"id": 4, "pieces": 1}',
]


@intervene(phase="parse", session_id="import of orders")
def pieces(line: str) -> int:
    return int(json.loads(line)["pieces"])


def main() -> None:
    total = 0
    for line in ORDERS:
        try:
            total += pieces(line)
        except ValueError as exc:  # it is in the queue: the other orders go on
            print(f"{line}: {exc}", *exc.__notes__, sep="\n  ")
    print(f"{total} pieces")


if __name__ == "__main__":
    main()
