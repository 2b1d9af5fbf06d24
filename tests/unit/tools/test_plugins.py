"""A person's own tools, by module, by file, and by a real installed package's entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forked
from tests.unit.tools.running import run
from unified_flow.config.paths import located_module
from unified_flow.errors import ConfigError
from unified_flow.tools.plugins import ToolModules, installed_tools
from unified_flow.tools.toolbox import Toolbox

PLAIN = '''
from json import dumps

def weather(city: str) -> str:
    """Tell the weather."""
    return dumps(city)

def _hidden(a: int) -> int:
    return a
'''
MARKED = """
from unified_flow.tools.functions import tool

@tool(access="reads")
def first() -> int:
    return 1

def not_marked() -> int:
    return 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "plain_tools.py").write_text(PLAIN)
    (tmp_path / "marked_tools.py").write_text(MARKED)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def names(*specs: str) -> list[str]:
    return [tool.name for tool in ToolModules(specs).tools()]


def test_a_module_offers_its_own_public_functions_or_what_it_marks(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    assert names("plain_tools") == ["weather"]
    assert names("marked_tools") == ["first"]
    assert names("marked_tools:not_marked", "plain_tools") == ["not_marked", "weather"]


def test_a_file_needs_no_installation_and_its_place_is_kept(folder: Path) -> None:
    spec = located_module(folder, "plain_tools:weather")
    assert spec == f"{folder}/plain_tools.py:weather"
    assert names(spec) == ["weather"]
    assert located_module(folder, "sub/mine.py") == f"{folder}/sub/mine.py"
    assert located_module(folder, "json:dumps") == "json:dumps", (
        "what is installed goes by its name"
    )


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("no_such_module_here", "No module named"),
        ("plain_tools:nothing", "has no nothing"),
        ("broken", "ZeroDivisionError"),
        ("leaving", "SystemExit"),
        ("empty", "holds no tool"),
        ("missing.py", "No such file"),
    ],
)
def test_what_cannot_be_loaded_says_why(folder: Path, spec: str, said: str) -> None:
    sys.path.insert(0, str(folder))
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "leaving.py").write_text("raise SystemExit(2)\n")
    (folder / "empty.py").write_text("x = 1\n")
    with pytest.raises(ConfigError, match=said):
        ToolModules([spec]).tools()


def test_an_installed_package_offers_tools_by_its_entry_points(folder: Path) -> None:
    """A distribution as pip would leave it: its module and its metadata on the path."""
    meta = folder / "shop_tools-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-tools\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text("[unified_flow.tools]\nshop = plain_tools:weather\n")
    shown = forked.run(
        [
            sys.executable,
            "-c",
            "import sys\nfrom unified_flow.tools.plugins import installed_tools as i\n"
            "sys.path.append(sys.argv[1])\nprint([(t.name, t.source) for t in i()])",
            str(folder),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "('weather', 'entry point shop (plain_tools:weather)')" in shown.stdout
    assert installed_tools() == []


def test_a_helper_that_two_modules_share_is_read_again_for_both(tmp_path: Path) -> None:
    (tmp_path / "shared_rate.py").write_text("RATE = 1\n")
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(
            f"def {name}() -> int:\n    'It.'\n    import shared_rate as r\n    return r.RATE\n"
        )
    modules = ToolModules([str(tmp_path / "one.py"), str(tmp_path / "two.py")])

    def results() -> list[object]:
        return [run(Toolbox(modules.tools()), name).result for name in ("one", "two")]

    assert results() == [1, 1]
    before = modules.digests()
    (tmp_path / "shared_rate.py").write_text("RATE = 22\n")
    assert results() == [22, 22]
    assert modules.digests() != before
