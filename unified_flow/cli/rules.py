"""`unified-flow rules`: what a user does not want to be answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from interventions.cli.terminal import Code, note, say
from unified_flow.cli import options

if TYPE_CHECKING:
    from unified_flow.guardrails.store import GuardrailStore
    from unified_flow.guardrails.user_rules import UserRules


User = Annotated[str, typer.Option("--user", help="Whose rules.", metavar="ID")]
Words = Annotated[list[str], typer.Argument(help="Words and phrases.", show_default=False)]
ToPerson = Annotated[
    bool, typer.Option("--escalate", help="Messages that match go to a person for an answer.")
]


def store_at(home: Path | None) -> GuardrailStore:
    """Raises ConfigError, also where the extra is not installed."""
    from interventions.home import find_home
    from unified_flow.config.settings import load
    from unified_flow.guardrails.inspector import open_store

    place = find_home(home)
    return open_store(place, load(place).guardrails)


def user_named(user: str) -> str:
    """The user as the flow knows them. Raises InputError."""
    from unified_flow.turns.input_checks import checked_user

    return checked_user(user)


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
    store = store_at(home)
    one = store.rules(user_named(user)) if user is not None else None
    found = store.all_rules() if user is None else [one] if one is not None else []
    if as_json:
        say(json.dumps({"rules": [each.as_row() for each in found]}, ensure_ascii=False))
    elif not found:
        note("no rules yet: unified-flow rules add spam 'buy now'")
    for each in found if not as_json else []:
        say(f"{each.user_id}: {_switches(each)}")
        for rule in each.rules():
            person = "  (goes to a person)" if rule.escalates else ""
            say(f"  {rule.kind:<8}  {rule.text}{person}")


def add(
    rules: Words,
    user: User = "default",
    escalate: ToPerson = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Flag words and phrases: messages with them are not answered.

    A single word is found in its inflections too (spam: spams, spammed, spamming). A * at an end
    stands for more letters: 'spam*' is every word that begins so, '*spam' every one that ends so.

    \b
    unified-flow rules add spam 'buy now' --user ada
    unified-flow rules add lawyer 'attorn*' --escalate
    """
    from unified_flow.guardrails.matcher import inflections
    from unified_flow.guardrails.user_rules import merged, parsed_rules

    more = parsed_rules(user, rules, escalates=escalate)
    _changed(user, lambda before: merged(before, more), home, as_json)
    for rule in more.rules():
        if (forms := inflections(rule.text)) and not as_json:
            note(f"  {rule.text}: also {', '.join(forms)}")


def delete(
    rules: Words, user: User = "default", as_json: options.AsJson = False, home: options.Home = None
) -> None:
    """Take rules away, however they are written: SPAM is spam.

    \b
    unified-flow rules delete spam
    """
    from unified_flow.guardrails.user_rules import missing, without

    if absent := missing(store_at(home).rules(user_named(user)), rules):
        note(f"error: {user} has no rule {absent[0]!r}")
        note("  hint: unified-flow rules list")
        raise typer.Exit(Code.NOT_FOUND)
    _changed(user, lambda before: without(before, rules), home, as_json)


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
    """Set where anything is answered: everywhere unless switched off here.

    \b
    unified-flow rules set --user ada --no-comments
    unified-flow rules set --off
    """
    switches = {
        "ai_control_enabled": control,
        "ai_enabled_for_chats": chats,
        "ai_enabled_for_comments": comments,
    }
    new = {name: value for name, value in switches.items() if value is not None}
    _changed(user, lambda before: before.model_copy(update=new), home, as_json)


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
    from functools import partial

    from unified_flow.guardrails.user_rules import merged, read_rules

    read = read_rules(file, user)
    after = [
        store_at(home).change(user_named(more.user_id), partial(merged, more=more)) for more in read
    ]
    if as_json:
        say(json.dumps({"rules": [each.as_row() for each in after]}, ensure_ascii=False))
        return
    for each in after:
        note(_summary(each))
    if not after:
        note(f"{file} holds no rules")


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
    """Try the user's rules on a message. Moderation is not asked, nothing is recorded.

    \b
    unified-flow rules test "B u y   n o w, no v1agra"

    Exit code 0 if it would be answered, else 1.
    """
    from unified_flow.guardrails.verdict import PASS, of_rules

    active = store_at(home).active_rules(user_named(user))
    matches = active.matcher.matches(text) if active is not None else []
    result = PASS
    if active is not None:
        result = of_rules(active.rules, active.matcher, channel, text)
    if as_json:
        found = [{"rule": m.rule.text, "kind": m.rule.kind, "hidden": m.disguised} for m in matches]
        shown = result.as_state() | {"matched_rule": result.matched_rule, "matches": found}
        say(json.dumps(shown, ensure_ascii=False))
    else:
        say("pass" if result.passes else f"{result.decision}: {result.reason}")
        for match in matches:
            disguised = ", in disguise" if match.disguised else ""
            say(f"  {match.rule.kind} {match.rule.text}{disguised}")
    if not result.passes:
        raise typer.Exit(Code.FAILED)


def _changed(
    user: str, change: Callable[[UserRules], UserRules], home: Path | None, as_json: bool
) -> None:
    """Changes the user's rules and shows them. Raises InputError for what is no user's name."""
    after = store_at(home).change(user_named(user), change)
    if as_json:
        say(json.dumps(after.as_row(), ensure_ascii=False))
    else:
        note(_summary(after))


def _summary(rules: UserRules) -> str:
    return f"{rules.user_id} has {len(list(rules.rules()))} rules and {_switches(rules)}"


def _switches(rules: UserRules) -> str:
    if not rules.ai_control_enabled:
        return "answers nowhere"
    off = [
        name
        for name, on in (
            ("chats", rules.ai_enabled_for_chats),
            ("comments", rules.ai_enabled_for_comments),
        )
        if not on
    ]
    return f"answers, but not in {' and '.join(off)}" if off else "answers everywhere"
