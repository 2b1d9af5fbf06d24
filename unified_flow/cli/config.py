"""`unified-flow init` and `unified-flow config`: a settings file, and what is in force."""

from __future__ import annotations

import json
from os.path import relpath
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from interventions.cli.terminal import note, paint, say, say_painted
from interventions.home import LOG_FOLDER, STATE_FOLDER, find_home
from unified_flow.cli import options
from unified_flow.cli.terminal import say_object


def init(
    folder: Annotated[
        Path | None, Argument(help="Where the project is [default: --home, or this folder].")
    ] = None,
    docs: options.Docs = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Write a commented unified_flow.toml and its schema.

    \b
    unified-flow init --docs docs/
    unified-flow init ~/project --docs ~/project/docs
    """
    from interventions.home import SETTINGS_FILE
    from unified_flow.config.document_roots import is_address, resolved
    from unified_flow.config.settings_reference import SCHEMA_FILE, json_schema, template
    from unified_flow.errors import InputError

    folder = folder or home or Path()
    target = folder / SETTINGS_FILE
    if target.exists() and not force:
        raise InputError(f"{target} is there already", hint="--force replaces it")
    resolved(docs or [])  # raises for what is not there
    roots = [root if is_address(root) else relpath(root, folder) for root in docs or []]
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text(template(roots), "utf-8")
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False)
    (folder / SCHEMA_FILE).write_text(schema + "\n", "utf-8")
    ignored = _ignore_state(folder / ".gitignore")
    if as_json:
        say_object({"settings": str(target), "schema": str(folder / SCHEMA_FILE)})
        return
    say(f"wrote {target} and {folder / SCHEMA_FILE}")
    if ignored:
        say(f"git ignores {' and '.join(ignored)} now: {folder / '.gitignore'}")
    note("  every setting:  unified-flow config show")
    note("  a check of all: unified-flow doctor")


def _ignore_state(path: Path) -> list[str]:
    """Keep run-time state out of git; which lines that took. What is in the file stays."""
    before = path.read_text("utf-8") if path.exists() else ""
    known = {line.strip().removesuffix("*").strip("/") for line in before.splitlines()}
    missing = [f"/{name}/" for name in (STATE_FOLDER, LOG_FOLDER) if name not in known]
    if missing:
        gap = "\n" if before and not before.endswith("\n") else ""
        path.write_text(before + gap + "\n".join(missing) + "\n", "utf-8")
    return missing


def show(
    changed: Annotated[bool, Option("--changed", help="Only what is not at its default.")] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Every setting, its value and where that came from; never a secret.

    \b
    unified-flow config show
    unified-flow config show --changed
    UNIFIED_FLOW_LIMITS__RETRY=0 unified-flow config show --json
    """
    from dataclasses import asdict

    from unified_flow.config.settings_reference import settings_of

    rows = [s for s in settings_of(find_home(home)) if not changed or s.source != "default"]
    if as_json:
        say_object({"settings": [asdict(row) for row in rows]})
        return
    for row in rows:
        value = json.dumps(row.value, ensure_ascii=False)
        origin = row.source if row.source == "default" else f"from {row.source}"
        line = paint(f"{row.key} = {value}", "bold" if row.source != "default" else "plain")
        say_painted(f"{line}  {paint(f'({origin})', 'dim')}")
    if not rows:
        note("every setting is at its default")
