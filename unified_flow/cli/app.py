"""The commands of `unified-flow`, and where each of them is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import typer
from typer.core import TyperCommand

from interventions.cli.command_group import CommandGroup
from interventions.cli.main import app as interventions
from unified_flow.cli.exits import exits


class FlowCommand(TyperCommand):
    def invoke(self, ctx: click.Context) -> Any:
        with exits():
            return super().invoke(ctx)


class Commands(CommandGroup):
    package = "unified_flow.cli"
    program = "unified-flow"
    leaf_class = FlowCommand


def _monitor(home: Path | None, arguments: list[str]) -> None:
    from monitor.__main__ import main

    main([*(["--home", str(home)] if home else []), *arguments])


MONITOR = click.Command(
    "monitor",
    callback=_monitor,
    help="Triage in the terminal: what waits for a person, live.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
    params=[
        click.Option(["--home"], type=click.Path(path_type=Path)),
        click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED),
    ],
)

Commands.table = {
    "ask": "ask:ask",
    "chat": "chat.command:chat",
    "resume": "resume:resume",
    "replay": "replay:replay",
    "index": "index:index",
    "search": "search:search",
    "serve": "serve:serve",
    "collections": Commands.of(
        "collections",
        "The named indexes of this project.\n\n"
        "Try:  unified-flow index manuals/ --collection manuals",
        {
            "list": "collections:list_collections",
            "show": "collections:show_collection",
            "delete": "collections:delete_collection",
        },
    ),
    "turns": Commands.of(
        "turns",
        "The turns: their questions, and how far each came.\n\nTry:  unified-flow turns show 12",
        {
            "list": "turns:list_turns",
            "show": "turns:show_turn",
            "abandon": "turns:abandon",
            "recover": "recovery:recover",
            "salvage": "turns:salvage",
            "prune": "turns:prune",
        },
    ),
    "trace": "trace:trace",
    "tools": Commands.of(
        "tools",
        "The tools of a turn: built in, your own, and those of MCP servers.\n\n"
        "Try:  unified-flow tools call calculate expression='17 * 3'",
        {
            "list": "tools:list_tools",
            "call": "tools:call_tool",
        },
    ),
    "grants": Commands.of(
        "grants",
        "What people have allowed tools to do.\n\nTry:  unified-flow grants list",
        {"list": "tools:list_grants", "delete": "tools:delete_grants"},
    ),
    "sessions": Commands.of(
        "sessions",
        "Saved conversations: questions and answers, session by session.\n\n"
        "Try:  unified-flow sessions show ros",
        {
            "list": "sessions:list_sessions",
            "show": "sessions:show_session",
            "export": "sessions:export_session",
            "delete": "sessions:delete_session",
        },
    ),
    "rules": Commands.of(
        "rules",
        "Flagged words and phrases, and where anything is answered, for each user.",
        {
            "list": "guardrails:list_rules",
            "add": "guardrails:add",
            "delete": "guardrails:delete",
            "set": "guardrails:set_switches",
            "import": "guardrails:import_rules",
            "test": "guardrails:try_rules",
        },
    ),
    "decisions": Commands.of(
        "decisions",
        "What was decided about each message: answered, ignored, or left to a person.",
        {"list": "guardrails:list_decisions"},
    ),
    "guardrails": Commands.of(
        "guardrails", "What the guardrails did.", {"show": "guardrails:show_counts"}
    ),
    "memory": Commands.of(
        "memory",
        "What is remembered of a user from turn to turn.\n\nTry:  unified-flow memory list",
        {"list": "memory:list_memories", "add": "memory:add", "delete": "memory:delete"},
    ),
    "init": "config:init",
    "config": Commands.of(
        "config",
        "What the settings are, and where each comes from.\n\nTry:  unified-flow config show",
        {"show": "config:show"},
    ),
    "model": Commands.of(
        "model",
        "Models from files (extra: local).\n\nTry:  unified-flow model get URL --sha256 SUM",
        {"get": "model:get_model", "serve": "serve:serve_model"},
    ),
    "eval": Commands.of(
        "eval",
        "How good the answers are: a set of questions through the same flow as `ask`.\n\n"
        "unified-flow eval questions.jsonl --docs docs/     (the same as eval run)",
        {
            "run": "evaluate:run",
            "compare": "evaluate:compare",
            "list": "evaluate:list_runs",
            "show": "evaluate:show",
        },
        default="run",
    ),
    "doctor": "doctor:doctor",
    "interventions": typer.main.get_group(interventions),
    "monitor": MONITOR,
}

app = Commands.app(
    "Ask your documents a question; when a phase fails, the turn stops and waits for a person.\n\n"
    "Try:  unified-flow ask 'How do topics differ from services?' --docs docs/"
)
