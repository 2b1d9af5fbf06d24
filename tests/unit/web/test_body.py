"""Replies unpacked within a limit."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unified_flow.errors import PageUnusableError
from unified_flow.retrieval.web.body import body_of

URL = "http://site.example/"
PACKERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "": lambda data: data,
    "identity": lambda data: data,
}


@given(data=st.binary(max_size=3000), encoding=st.sampled_from(sorted(PACKERS)))
def test_what_was_packed_comes_back(data: bytes, encoding: str) -> None:
    packed = PACKERS[encoding](data)
    assert body_of(URL, encoding, packed, max(len(data), len(packed))) == data


def test_several_members_and_what_pads_them() -> None:
    packed = gzip.compress(b"one ", mtime=0) + gzip.compress(b"two", mtime=0) + b"\0\0\0\0"
    assert body_of(URL, "gzip", packed, 100) == b"one two"


@pytest.mark.parametrize("encoding", ["gzip", ""])
def test_one_byte_too_many(encoding: str) -> None:
    with pytest.raises(PageUnusableError, match="is larger than"):
        body_of(URL, encoding, PACKERS[encoding](b"x" * 101), 100)


def test_a_bomb_never_takes_more_than_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000, mtime=0)
    tracemalloc.start()
    with pytest.raises(PageUnusableError, match="is larger than"):
        body_of(URL, "gzip", bomb, 60_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "x" * 1000])
def test_what_was_not_asked_for(encoding: str) -> None:
    with pytest.raises(PageUnusableError, match="nobody asked for"):
        body_of(URL, encoding, b"", 100)


@pytest.mark.parametrize(
    "packed",
    [gzip.compress(b"x" * 500, mtime=0)[:-9], gzip.compress(b"x", mtime=0)[:5], b"no gzip at all"],
)
def test_what_is_broken(packed: bytes) -> None:
    with pytest.raises(PageUnusableError, match="is broken"):
        body_of(URL, "gzip", packed, 1000)
