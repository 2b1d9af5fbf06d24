"""How each editor is told the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.core.desktop import editor_command, source_line

FILE = Path("/tmp/x.py")


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, ["vi", "+7", str(FILE)]),
        ({"VISUAL": " ", "EDITOR": "\t"}, ["vi", "+7", str(FILE)]),
        ({"EDITOR": "nano"}, ["nano", "+7", str(FILE)]),
        ({"VISUAL": "emacs -nw", "EDITOR": "nano"}, ["emacs", "-nw", "+7", str(FILE)]),
        ({"VISUAL": "code --wait"}, ["code", "--wait", "--goto", f"{FILE}:7"]),
        ({"VISUAL": "/usr/bin/hx"}, ["/usr/bin/hx", f"{FILE}:7"]),
    ],
)
def test_the_command(
    environment: dict[str, str], wanted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.setenv(name, environment.get(name, ""))
    assert editor_command(FILE, 7) == wanted


@pytest.mark.parametrize(
    "location", [None, "", "x.py", ":7", "x.py:", "x.py:x", "x.py:" + "9" * 5000, "a\0b:7"]
)
def test_no_place(location: str | None) -> None:
    assert source_line(location) is None


def test_a_place() -> None:
    assert source_line("C:/x.py:7") == (Path("C:/x.py"), 7)
