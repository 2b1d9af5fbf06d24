"""Who may import whom, and what must not be loaded for what."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import unified_flow
from unified_flow.phases import NAMES

ROOT = Path(unified_flow.__file__).parent.parent
OURS = {"unified_flow", "interventions", "monitor"}
LATE = {"textual", "fastapi", "uvicorn", "dbos", "xllamacpp", "qdrant_client", "sqlalchemy", "mcp"}
LATE |= {"tenacity"}
# Made of SQLAlchemy, and loaded late themselves.
TABLES = {"database", "engines", "postgres", "store", "tables"}
LATE |= {f"unified_flow.guardrails.{name}" for name in TABLES}


def _imports(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def _of_tables(path: Path) -> bool:
    guardrails = ROOT / "unified_flow/guardrails"
    named = path.parent == guardrails and path.stem in TABLES
    return named or path.is_relative_to(guardrails / "migrations")


def _reaches(names: Iterator[str], packages: set[str]) -> set[str]:
    return {name for name in names for package in packages if f"{name}.".startswith(f"{package}.")}


@pytest.mark.parametrize("path", _files("interventions"), ids=str)
def test_the_queue_knows_nothing_of_the_flow(path: Path) -> None:
    assert not _reaches(_imports(path), {"unified_flow", "monitor"})


@pytest.mark.parametrize("path", _files("monitor"), ids=str)
def test_the_monitor_knows_nothing_of_the_flow(path: Path) -> None:
    assert not _reaches(_imports(path), {"unified_flow"})


# What stands below knows little, so that whatever stands above can be read with it alone.
KNOWS = {
    "unified_flow/errors": {"unified_flow.errors"},
    "unified_flow/turns": {"unified_flow.turns", "unified_flow.errors"},
    "unified_flow/text": {"unified_flow.text"},
    "interventions/secrets": {"interventions.secrets"},
}


@pytest.mark.parametrize("folder", KNOWS)
def test_what_stands_below_knows_little(folder: str) -> None:
    top = folder.split("/")[0]
    for path in _files(folder):
        names = {name for name in _imports(path, top_level_only=True) if name.startswith(f"{top}.")}
        assert names == _reaches(iter(names), KNOWS[folder]), path


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda p: p.name)
def test_benchmarks_import_what_there_is(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS:
            for alias in node.names:
                # As an import statement finds it: an attribute, else a module of that name.
                if not hasattr(import_module(node.module), alias.name):
                    import_module(f"{node.module}.{alias.name}")


def test_phases_holds_exactly_the_eight() -> None:
    modules = {path.stem for path in (ROOT / "unified_flow/phases").glob("*.py")}
    assert modules == {"__init__", *NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_phase_knows_no_other_nor_the_queue_nor_the_terminal(name: str) -> None:
    path = ROOT / "unified_flow/phases" / f"{name}.py"
    refused = {"unified_flow.phases", "typer", "rich", "textual", "interventions"}
    assert not _reaches(_imports(path), refused)
    assert "except" not in path.read_text()


API = ROOT / "unified_flow/api"


@pytest.mark.parametrize(
    "path",
    [path for path in _files("unified_flow") if not _of_tables(path)] + _files("interventions"),
    ids=str,
)
def test_what_is_heavy_is_imported_late(path: Path) -> None:
    own = {"fastapi", "uvicorn"} if path.is_relative_to(API) else {"unified_flow.api"}
    late = LATE - own if path.is_relative_to(API) else LATE | own
    assert not _reaches(_imports(path, top_level_only=True), late)


def _loaded_by(*command: str) -> set[str]:
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *command],
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}


def test_the_version_is_told_without_loading_anything() -> None:
    loaded = _loaded_by("unified_flow", "--version")
    assert not loaded & {"pydantic", "httpx", "typer", "rich", "asyncio"}


def test_help_loads_no_model_and_no_client() -> None:
    assert not _loaded_by("unified_flow", "--help") & {"pydantic", "httpx", "textual"}


def test_the_list_of_interventions_loads_neither_client_nor_monitor(home: Path) -> None:
    loaded = _loaded_by("interventions", "list", "--home", str(home))
    assert not loaded & {"httpx", "textual", "unified_flow", "importlib.metadata"}


def test_help_does_not_look_through_what_is_installed() -> None:
    assert "importlib.metadata" not in _loaded_by("unified_flow", "ask", "--help")
