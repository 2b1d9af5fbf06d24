"""How often one client may ask: a pure function of the clock that it is given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unified_flow.api.access import Buckets, Rate
from unified_flow.config.tables import ServeSettings


def test_five_at_once_then_one_every_fifth_of_a_second() -> None:
    buckets = Buckets(Rate(5, "second"))
    assert [buckets.take("a", 10.0) for _ in range(5)] == [0.0] * 5
    assert buckets.take("a", 10.0) == pytest.approx(0.2)
    assert buckets.take("b", 10.0) == 0.0, "another client has its own"
    assert buckets.take("a", 10.19) > 0.0
    assert buckets.take("a", 10.21) == 0.0


@given(st.integers(1, 50), st.lists(st.floats(0, 0.5), max_size=200))
def test_never_more_than_the_burst_and_what_has_come_back(most: int, pauses: list[float]) -> None:
    buckets, now, let_in = Buckets(Rate(most, "second")), 0.0, 0
    for pause in pauses:
        now += pause
        let_in += buckets.take("a", now) == 0.0
    assert let_in <= most * (1 + now) + 1e-6


def test_whoever_was_silent_longest_is_forgotten() -> None:
    buckets = Buckets(Rate(1, "hour"), most_clients=2)
    for client in ("a", "b", "c"):
        assert buckets.take(client, 0.0) == 0.0
    assert buckets.take("c", 0.0) > 0.0
    assert buckets.take("a", 0.0) == 0.0


@pytest.mark.parametrize("text", ["", "5", "5/day", "0/second", "-1/second", "x/second"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ValueError, match="a rate is like"):
        ServeSettings(rate_limit=text)


def test_a_rate_as_the_settings_write_it() -> None:
    assert Rate.parse(ServeSettings(rate_limit="60/minute").rate_limit) == Rate(60, "minute")


def test_off() -> None:
    assert Rate.parse("off") is None
    assert Buckets(None).take("a", 0.0) == 0.0
