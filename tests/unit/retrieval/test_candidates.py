import itertools
import re

import pytest

from unified_flow.retrieval.bm25 import holding

SHARES = {"a": 0.4, "b": 0.3, "c": 0.15, "d": 0.1, "e": 0.05}


def chosen(match: str, held: set[str]) -> bool:
    """What FTS5 makes of it for a chunk with these terms."""
    python = re.sub(r'"(\w)"', lambda term: str(term[1] in held), match)
    return bool(eval(python.replace("AND", "and").replace("OR", "or") or "False"))


@pytest.mark.parametrize("demand", [1.0, 0.8, 0.55, 0.3, 0.1, 0.0])
@pytest.mark.parametrize("depth", [0, 1, 3, 5])
def test_a_chunk_that_holds_as_much_as_is_demanded_is_always_chosen(
    demand: float, depth: int
) -> None:
    match = holding(SHARES, demand, depth)
    for count in range(1, 6):
        for held in itertools.combinations(SHARES, count):
            if sum(SHARES[term] for term in held) >= demand + 1e-9:
                assert chosen(match, set(held)), (match, held)


def test_with_depth_enough_nothing_else_is_chosen() -> None:
    match = holding(SHARES, 0.54, 5)

    assert not chosen(match, {"b", "c", "e"})
    assert chosen(match, {"b", "c", "d"})


def test_nothing_is_asked_where_no_chunk_can_hold_it() -> None:
    assert holding(SHARES, 1.2) == ""
    assert holding({}, 0.0) == ""
