from __future__ import annotations

import os
from pathlib import Path

import pytest

from unified_flow.errors import ConfigError
from unified_flow.servers.keys import exposure, read_key

KEY = "sk-test-0123456789"


def test_the_variable_is_read_and_trimmed() -> None:
    assert read_key(environ={"OPENAI_API_KEY": f" {KEY}\n"}) == KEY
    assert read_key("MY_KEY", environ={"MY_KEY": KEY, "OPENAI_API_KEY": "other"}) == KEY


@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": ""}, {"OPENAI_API_KEY": " "}])
def test_many_servers_need_no_key(environ: dict[str, str]) -> None:
    assert read_key(environ=environ) is None


def test_a_variable_named_on_purpose_must_be_set() -> None:
    with pytest.raises(ConfigError, match=r"variable MY_KEY.* is not set") as caught:
        read_key("MY_KEY", environ={"OPENAI_API_KEY": KEY})
    assert "export MY_KEY" in str(caught.value.hint)


def test_a_file_comes_before_the_variable(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"\ufeff{KEY}\r\n", encoding="utf-8")
    assert read_key(file=file, environ={"OPENAI_API_KEY": "other"}) == KEY


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b" \n", "is empty"), (b"two keys", "does not hold one key"),
     (b"one-key\ntwo-keys", "does not hold one key"),
     ("nyckel-å".encode(), "does not hold one key"),
     (b"\x00\x01", "does not hold one key"), (b"x" * 10_000, "too long")],
)  # fmt: skip
def test_a_file_without_a_usable_key(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        read_key(file=file)
    assert "one-key" not in str(caught.value)
    assert caught.value.hint


def test_a_file_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_key(file=tmp_path / "missing")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_key(file=tmp_path)
    with pytest.raises(ConfigError, match="null byte"):
        read_key(file=Path("a\0b"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_key(file=tmp_path / "pipe")


def test_a_file_that_others_can_read_is_worth_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o600)
    assert exposure(file) is None
    file.chmod(0o644)
    assert exposure(file) == f"{file} can be read by others (mode 0644): chmod 600 {file}"
    assert exposure(tmp_path / "missing") is None


def test_a_variable_with_a_line_break_never_becomes_a_header() -> None:
    with pytest.raises(ConfigError, match="variable OPENAI_API_KEY does not hold one key"):
        read_key(environ={"OPENAI_API_KEY": "a\r\nX-Header: b"})
