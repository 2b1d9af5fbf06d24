"""What the layer contracts in pyproject.toml cannot say: circles, names, and what loads when."""

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
PACKAGES = ("unified_flow", "interventions", "monitor")
# These names say everything there is to say of such a file.
COMMON_STEMS = {"__init__", "__main__", "settings", "store", "schema", "model"}
LATE = {"textual", "fastapi", "uvicorn", "dbos", "xllamacpp", "qdrant_client", "sqlalchemy", "mcp"}


def _files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def test_phases_holds_the_eight() -> None:
    modules = {path.stem for path in (ROOT / "unified_flow/phases").glob("*.py")}
    assert modules == {"__init__", "context", "errors", "recipe", *NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_phase_loads_little_and_catches_nothing(name: str) -> None:
    loaded = _loaded_by_import(f"unified_flow.phases.{name}")
    ours = {module for module in loaded if module.split(".")[0] in PACKAGES}
    assert not ours & {"interventions.queue", "unified_flow.retrieval.index"}
    assert not {"typer", "textual"} & loaded
    assert "except" not in (ROOT / f"unified_flow/phases/{name}.py").read_text()


def _imported(path: Path) -> Iterator[str]:
    """What the module imports as soon as it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


# Packages whose purpose is one heavy library; they are imported late themselves.
OF_A_LIBRARY = {
    "unified_flow/api": {"fastapi", "uvicorn"},
    "unified_flow/guardrails": {"sqlalchemy"},
}


def _loaded_by(*command: str) -> set[str]:
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", *command], capture_output=True, text=True, check=True
    )
    return {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}


def _loaded_by_import(module: str) -> set[str]:
    return _loaded_by("-c", f"import {module}")


def test_the_version_loads_nothing() -> None:
    loaded = _loaded_by("-m", "unified_flow", "--version")
    assert not loaded & {"pydantic", "httpx", "typer", "rich", "asyncio"}


def test_the_public_face_is_loaded_late() -> None:
    assert not _loaded_by_import("unified_flow, interventions") & {"pydantic", "httpx", "asyncio"}


@pytest.mark.parametrize("package", ["unified_flow", "interventions"])
def test_every_public_name_is_there(package: str) -> None:
    face = import_module(package)
    assert [name for name in face.__all__ if not hasattr(face, name)] == []


def test_help_loads_no_model_no_client_and_no_table() -> None:
    loaded = _loaded_by("-m", "unified_flow", "--help")
    assert not loaded & {"pydantic", "httpx", "textual", "sqlalchemy"}


def test_asking_loads_no_table() -> None:
    assert "sqlalchemy" not in _loaded_by_import("unified_flow.wiring")


def test_the_list_of_interventions_loads_neither_client_nor_monitor(home: Path) -> None:
    loaded = _loaded_by("-m", "interventions", "list", "--home", str(home))
    assert not loaded & {"httpx", "textual", "unified_flow", "importlib.metadata"}


def test_help_does_not_look_through_what_is_installed() -> None:
    assert "importlib.metadata" not in _loaded_by("-m", "unified_flow", "ask", "--help")


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda p: p.name)
def test_benchmarks_import_what_there_is(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            for alias in node.names:
                # As an import statement finds it: an attribute, else a module of that name.
                if not hasattr(import_module(node.module or ""), alias.name):
                    import_module(f"{node.module}.{alias.name}")
