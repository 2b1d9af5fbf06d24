"""What the layer contracts in pyproject.toml cannot say: circles, names, and what loads when."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import grimp
import pytest

import unified_flow
from unified_flow.lib.threads import wait_for
from unified_flow.phases import NAMES
from unified_flow.stores import turn_store
from unified_flow.turns.events import TurnStarted

ROOT = Path(unified_flow.__file__).parent.parent
PACKAGES = ("unified_flow", "interventions", "monitor")
# These names say everything there is to say of such a file.
COMMON_STEMS = {"__init__", "__main__", "settings", "store", "schema", "model", "env"}
LATE = {"textual", "fastapi", "uvicorn", "dbos", "xllamacpp", "qdrant_client", "sqlalchemy", "mcp"}


def _files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def test_no_circle_of_files() -> None:
    graph = grimp.build_graph(*PACKAGES)
    modules = graph.modules
    below = {module: graph.find_modules_directly_imported_by(module) for module in modules}
    # Take away what imports nothing that is left; what remains is a circle, or above one.
    while leaves := {module for module, others in below.items() if not others & below.keys()}:
        below = {module: others for module, others in below.items() if module not in leaves}
    tied = set(below)
    while tops := {m for m in tied if not any(m in below[other] for other in tied)}:
        tied -= tops
    assert tied == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_no_file_name_stands_twice(package: str) -> None:
    stems = defaultdict(list)
    for path in _files(package):
        if path.stem not in COMMON_STEMS and not {"cli", "api", "errors"} & set(path.parts):
            stems[path.stem].append(str(path.relative_to(ROOT)))
    assert {stem: paths for stem, paths in stems.items() if len(paths) > 1} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_public_class_name_stands_twice(package: str) -> None:
    classes = defaultdict(list)
    for path in _files(package):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in classes.items() if len(paths) > 1} == {}


def test_phases_holds_the_eight() -> None:
    modules = {path.stem for path in (ROOT / "unified_flow/phases").glob("*.py")}
    assert modules == {"__init__", "context", "errors", "recipe", *NAMES}


def test_a_phase_loads_little_and_catches_nothing() -> None:
    # Each loads no more than all of them do together.
    loaded = _loaded_by_import(", ".join(f"unified_flow.phases.{name}" for name in NAMES))
    ours = {module for module in loaded if module.split(".")[0] in PACKAGES}
    assert len(ours) < 40
    assert not ours & {"interventions.queue", "unified_flow.retrieval.index"}
    assert not {"typer", "textual"} & loaded
    for name in NAMES:
        assert "except" not in (ROOT / f"unified_flow/phases/{name}.py").read_text(), name


def _imported(path: Path) -> Iterator[str]:
    """What the module imports as soon as it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


# Rooms whose purpose is one heavy library; they are imported late themselves.
OF_A_LIBRARY = {
    "unified_flow/api": {"fastapi", "uvicorn"},
    "unified_flow/guardrails": {"sqlalchemy"},
    "unified_flow/mcp_service.py": {"mcp"},
    "unified_flow/shared/migration.py": {"sqlalchemy"},
    "unified_flow/shared/workflows.py": {"dbos"},
    "unified_flow/tools/mcp_connection.py": {"mcp"},
}


def test_heavy_libraries_are_imported_late() -> None:
    early: dict[str, set[str]] = {}
    for path in [*_files("unified_flow"), *_files("interventions")]:
        rooms = {path, *path.parents}
        own = [libraries for top, libraries in OF_A_LIBRARY.items() if ROOT / top in rooms]
        tops = {name.split(".")[0] for name in _imported(path)}
        if found := tops & LATE.difference(*own):
            early[str(path.relative_to(ROOT))] = found
    assert early == {}


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


def test_a_list_of_turns_that_its_index_knows_loads_no_model(tmp_path: Path) -> None:
    turns = turn_store(tmp_path)
    lease = wait_for(turns.create())
    first = {"turn_id": 1, "session_id": "s", "request_id": "r", "user_id": "u", "channel": None}
    asked = TurnStarted(**first, question="What?", policy="fail_fast", config_digest="")
    wait_for(lease.append(asked))
    wait_for(lease.release())
    look = ("-m", "unified_flow", "turns", "list", "--home", str(tmp_path))
    assert "pydantic" in _loaded_by(*look)
    assert "pydantic" not in _loaded_by(*look)


def test_asking_loads_no_table() -> None:
    assert "sqlalchemy" not in _loaded_by_import("unified_flow.wiring")


def test_the_list_of_interventions_loads_neither_client_nor_monitor(home: Path) -> None:
    loaded = _loaded_by("-m", "interventions", "list", "--home", str(home))
    assert not loaded & {"httpx", "textual", "unified_flow", "importlib.metadata"}


def test_help_does_not_look_through_what_is_installed() -> None:
    assert "importlib.metadata" not in _loaded_by("-m", "unified_flow", "ask", "--help")


def test_benchmarks_import_what_there_is() -> None:
    named = {
        (node.module, alias.name)
        for path in (ROOT / "benchmarks").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if node.module.split(".")[0] in PACKAGES
    }
    for module, name in sorted(named):
        # As an import statement finds it: an attribute, else a module of that name.
        if not hasattr(import_module(module), name):
            import_module(f"{module}.{name}")
