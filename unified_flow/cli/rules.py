"""`unified-flow rules`: what a user does not want to be answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from interventions.cli.exits import Code
from interventions.cli.screen import note, say
from unified_flow.cli import options
from unified_flow.cli.exits import exits
from unified_flow.cli.guarding import change_rules, named, store_at, summary, switches, told

app = typer.Typer(
    help="Flagged words and phrases, and where anything is answered, for each user.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

User = Annotated[str, typer.Option("--user", help="Whose rules.", metavar="ID")]
Words = Annotated[list[str], typer.Argument(help="Words and phrases.", show_default=False)]
ToPerson = Annotated[
    bool, typer.Option("--escalate", help="What they match goes to a person, not to nobody.")
]


@app.command("list")
def list_rules(
    user: Annotated[
        str | None, typer.Option("--user", metavar="ID", help="Only this user's.")
    ] = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """The rules of every user, or of one; what --json prints can be imported.

    \b
    unified-flow rules list --user ada
    """
    with exits():
        store = store_at(home)
        one = store.rules(named(user)) if user is not None else None
        found = store.all_rules() if user is None else [one] if one is not None else []
        if as_json:
            say(json.dumps({"rules": [each.as_row() for each in found]}, ensure_ascii=False))
        elif not found:
            note("no rules yet: unified-flow rules add spam 'buy now'")
        for each in found if not as_json else []:
            say(f"{each.user_id}: {switches(each)}")
            for rule in each.rules():
                person = "  (goes to a person)" if rule.escalates else ""
                say(f"  {rule.kind:<8}  {rule.text}{person}")


@app.command("add")
def add(
    rules: Words,
    user: User = "default",
    escalate: ToPerson = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Flag words and phrases: messages with them are not answered.

    \b
    unified-flow rules add spam 'buy now' --user ada
    unified-flow rules add lawyer --escalate
    """
    with exits():
        from unified_flow.guardrails.editing import merged, written

        more = written(user, rules, escalates=escalate)
        told(change_rules(user, lambda before: merged(before, more), home), as_json)


@app.command("remove")
def remove(
    rules: Words, user: User = "default", as_json: options.AsJson = False, home: options.Home = None
) -> None:
    """Take rules away, however they are written: SPAM is spam.

    \b
    unified-flow rules remove spam
    """
    with exits():
        from unified_flow.guardrails.editing import missing, without

        if absent := missing(store_at(home).rules(named(user)), rules):
            note(f"error: {user} has no rule {absent[0]!r}")
            note("  hint: unified-flow rules list")
            raise typer.Exit(Code.NOT_FOUND)
        told(change_rules(user, lambda before: without(before, rules), home), as_json)


@app.command("set")
def set_switches(
    user: User = "default",
    control: Annotated[
        bool | None, typer.Option("--on/--off", help="Answer at all.", show_default=False)
    ] = None,
    chats: Annotated[bool | None, typer.Option(help="Answer in chats.", show_default=False)] = None,
    comments: Annotated[
        bool | None, typer.Option(help="Answer comments.", show_default=False)
    ] = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Say where anything is answered: everywhere unless switched off here.

    \b
    unified-flow rules set --user ada --no-comments
    unified-flow rules set --off
    """
    with exits():
        named = {
            "ai_control_enabled": control,
            "ai_enabled_for_chats": chats,
            "ai_enabled_for_comments": comments,
        }
        given = {name: value for name, value in named.items() if value is not None}
        told(change_rules(user, lambda before: before.model_copy(update=given), home), as_json)


@app.command("import")
def import_rules(
    file: Annotated[Path, typer.Argument(help="JSON as `rules list --json`, or a line a rule.")],
    user: User = "default",
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Add the rules of a file to those that are there.

    \b
    unified-flow rules import words.txt --user ada
    unified-flow rules list --json > all.json; unified-flow rules import all.json
    """
    with exits():
        from functools import partial

        from unified_flow.guardrails.editing import merged
        from unified_flow.guardrails.importing import read_rules

        after = [
            change_rules(more.user_id, partial(merged, more=more), home)
            for more in read_rules(file, user)
        ]
        if as_json:
            say(json.dumps({"rules": [each.as_row() for each in after]}, ensure_ascii=False))
            return
        for each in after:
            note(summary(each))
        if not after:
            note(f"{file} holds no rules")


@app.command("test")
def try_rules(
    text: Annotated[str, typer.Argument(help="A message.", show_default=False)],
    user: User = "default",
    channel: Annotated[
        Literal["chat", "comment"] | None,
        typer.Option(help="Where it is said.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """What the user's rules make of a message. Moderation is not asked, nothing is recorded.

    \b
    unified-flow rules test "B u y   n o w, no v1agra"

    Exit code 0 if it would be answered, else 1.
    """
    with exits():
        from unified_flow.guardrails.decision import PASS, of_rules
        from unified_flow.guardrails.rulebook import Rulebook

        ready = Rulebook(store_at(home)).of(named(user))
        matches = ready.matcher.matches(text) if ready is not None else []
        result = PASS
        if ready is not None:
            result = of_rules(ready.rules, ready.matcher, channel, text)
        if as_json:
            found = [
                {"rule": m.rule.text, "kind": m.rule.kind, "hidden": m.evaded} for m in matches
            ]
            told = result.as_state() | {"matched_rule": result.matched_rule, "matches": found}
            say(json.dumps(told, ensure_ascii=False))
        else:
            say("pass" if result.passes else f"{result.decision}: {result.reason}")
            for match in matches:
                hidden = ", in disguise" if match.evaded else ""
                say(f"  {match.rule.kind} {match.rule.text}{hidden}")
    if not result.passes:
        raise typer.Exit(Code.FAILED)
