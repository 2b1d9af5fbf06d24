"""How much a reader has to hold: files, lines, rooms, circles, and the walk of one question.

    python benchmarks/structure.py            # this checkout
    cd OTHER && .venv/bin/python .../structure.py   # another one, with its own interpreter

A room is what lies directly in a package; a circle a set of files that import one another, late and
type-checking imports included. A walk counts our files and functions that one question passes.
"""

from __future__ import annotations

import ast
import asyncio
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path.cwd()
sys.path.insert(0, str(ROOT))
PACKAGES = ("unified_flow", "interventions", "monitor")
COMMON = {"__init__", "__main__", "settings", "store", "schema", "model", "env"}
REFUSED = "http://127.0.0.1:9/v1"  # the discard port: nobody listens


def main() -> None:
    files = {path: path.read_text() for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    lines = {path: text.count("\n") for path, text in files.items()}
    trees = {path: ast.parse(text) for path, text in files.items()}
    imports = sum(map(_import_lines, trees.values()))
    longest = max(lines, key=lambda path: lines[path])
    circles = _circles(trees)
    print(f"files                   {len(files)}")
    print(f"lines                   {sum(lines.values())}")
    print(f"rooms                   {len(_rooms())}")
    print(f"circles (files in them) {len(circles)} ({sum(map(len, circles))})")
    print(f"median file             {statistics.median(lines.values()):.0f} lines")
    print(f"longest file            {lines[longest]} lines, {longest.relative_to(ROOT)}")
    print(f"imports, share of lines {imports / sum(lines.values()):.1%}")
    print(f"file names twice        {_twice(files)}")
    print(f"class names twice       {_classes_twice(trees)}")
    for phase in ("planner", "synthesis"):
        print(f"modules of ours that {phase} loads: {_loaded(f'unified_flow.phases.{phase}')}")
    for name, settings in (
        ("one question", {}),
        ("one failed model call", {"model": "m", "base_url": REFUSED}),
    ):
        places = _walk(settings)
        passed = {file for file, _ in places}
        print(f"{name}: {len(passed)} files, {len(places)} functions")


def _import_lines(tree: ast.Module) -> int:
    kinds = (ast.Import, ast.ImportFrom)
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    )


def _rooms() -> list[Path]:
    inside = [path for name in PACKAGES for path in (ROOT / name).iterdir()]
    return [
        path
        for path in inside
        if (path.is_dir() and any(path.rglob("*.py")))
        or (path.suffix == ".py" and path.stem != "__init__")
    ]


def _module(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def _circles(trees: dict[Path, ast.Module]) -> list[set[str]]:
    modules = {_module(path): tree for path, tree in trees.items()}
    below: dict[str, set[str]] = {name: set() for name in modules}
    for name, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                below[name] |= {alias.name for alias in node.names} & modules.keys()
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    below[name] |= {full if full in modules else node.module} & modules.keys()
    reached = {name: _reach(name, below) for name in modules}
    circles: list[set[str]] = []
    for name in modules:
        if name in reached[name] and not any(name in circle for circle in circles):
            circles.append({other for other in reached[name] if name in reached[other]})
    return circles


def _reach(start: str, below: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        new = below[left.pop()] - found
        found |= new
        left += new
    return found


def _twice(files: dict[Path, str]) -> int:
    stems = Counter(
        (path.relative_to(ROOT).parts[0], path.stem)
        for path in files
        if path.stem not in COMMON and not {"cli", "api", "errors"} & set(path.parts)
    )
    return sum(count > 1 for count in stems.values())


def _classes_twice(trees: dict[Path, ast.Module]) -> int:
    names = Counter(
        (path.relative_to(ROOT).parts[0], node.name)
        for path, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sum(count > 1 for count in names.values())


def _loaded(module: str) -> int:
    code = f"import {module}, sys; print(*sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return sum(name.split(".")[0] in PACKAGES for name in shown.stdout.split())


def _walk(settings: dict[str, Any]) -> set[tuple[str, str]]:
    """(file, function) of ours that a question passes, in every thread."""
    from unified_flow.flow import UnifiedFlow

    places: set[tuple[str, str]] = set()
    tops = tuple(f"{ROOT}/{name}/" for name in PACKAGES)

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(tops):
            places.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder) / "docs"
        docs.mkdir()
        (docs / "robots.md").write_text("# Topics\n\nA topic is a named bus for messages.\n")
        home = Path(folder) / "home"
        home.mkdir()

        async def ask() -> None:
            async with UnifiedFlow.from_config(home, docs=[docs]) as flow:
                await flow.process("s", "What is a topic?")  # so that the index is there
            async with UnifiedFlow.from_config(home, docs=[docs], **settings) as flow:
                with suppress(Exception):  # the failed call raises its phase's error
                    await _profiled(profile, flow.process("s", "What is a topic?"))

        asyncio.run(ask())
    return places


async def _profiled(profile: Callable[..., None], question: Any) -> Any:
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        return await question
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


if __name__ == "__main__":
    main()
