"""Replies unpacked within a limit."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unified_flow.errors import PageUnusableError
from unified_flow.retrieval.web.body import ReplyBody

URL = "http://site.example/"


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "": lambda data: data,
    "identity": lambda data: data,
}


def unpacked(encoding: str, packed: bytes, limit: int, size: int = 7) -> bytes:
    body = ReplyBody(URL, encoding, limit)
    for at in range(0, len(packed), size):
        body.add(packed[at : at + size])
    return body.finish()


@given(
    data=st.binary(max_size=3000),
    encoding=st.sampled_from(sorted(PACKERS)),
    size=st.integers(1, 4000),
)
def test_what_was_packed_comes_back_however_it_is_cut(
    data: bytes, encoding: str, size: int
) -> None:
    assert unpacked(encoding, PACKERS[encoding](data), len(data), size) == data


def test_deflate_without_its_head() -> None:
    assert unpacked("deflate", _raw_deflate(b"words " * 99), 10_000, 5000) == b"words " * 99


def test_several_members_and_what_pads_them() -> None:
    packed = gzip.compress(b"one ", mtime=0) + gzip.compress(b"two", mtime=0) + b"\0\0\0\0"
    assert unpacked("gzip", packed, 100, 4000) == b"one two"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", ""])
def test_one_byte_too_many(encoding: str) -> None:
    with pytest.raises(PageUnusableError, match="is larger than"):
        unpacked(encoding, PACKERS[encoding](b"x" * 101), 100)


def test_a_bomb_never_takes_more_than_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000, mtime=0)
    body = ReplyBody(URL, "gzip", 10_000)
    with pytest.raises(PageUnusableError, match="is larger than"):
        body.add(bomb)
    assert len(body._data) <= 10_001


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "x" * 1000])
def test_what_was_not_asked_for(encoding: str) -> None:
    with pytest.raises(PageUnusableError, match="nobody asked for"):
        ReplyBody(URL, encoding, 100)


@pytest.mark.parametrize(
    "packed",
    [gzip.compress(b"x" * 500, mtime=0)[:-9], gzip.compress(b"x", mtime=0)[:5], b"no gzip at all"],
)
def test_what_is_broken(packed: bytes) -> None:
    with pytest.raises(PageUnusableError, match="cannot be read"):
        unpacked("gzip", packed, 1000, 4000)
