"""`unified-flow rules`, `decisions` and `guardrails`: what is not answered, what was, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click
import typer
from typer import Argument, Option

from interventions.cli.terminal import Code, note, say
from interventions.errors import NotFoundError
from interventions.home import find_home
from interventions.plaintext import fit, one_line
from interventions.secrets.redaction import redact_text
from unified_flow.cli import options
from unified_flow.cli.terminal import beginning, say_list, say_object
from unified_flow.turns.input_checks import checked_user

if TYPE_CHECKING:
    from unified_flow.guardrails.store import GuardrailStore
    from unified_flow.guardrails.user_rules import UserRules

Words = Annotated[list[str], Argument(help="Words and phrases.")]


def _store(home: Path | None) -> GuardrailStore:
    """It is closed with the command. Raises ConfigError, also where the extra is not installed."""
    from unified_flow.config.settings import load
    from unified_flow.guardrails.guardrails import open_store

    place = find_home(home)
    store = open_store(place, load(place).guardrails)
    click.get_current_context().call_on_close(store.close)
    return store


def list_rules(
    user: options.OnlyUser = None, as_json: options.AsJson = False, home: options.Home = None
) -> None:
    """The rules of every user, or of one.

    \b
    unified-flow rules list --user ada
    """
    store = _store(home)
    one = store.rules(checked_user(user)) if user is not None else None
    found = store.all_rules() if user is None else [one] if one is not None else []
    lines = []
    for each in found:
        lines.append(f"{each.user_id}: {_switches(each)}")
        for rule in each.rules():
            person = "  (goes to a person)" if rule.escalates else ""
            lines.append(f"  {rule.kind:<8}  {rule.text}{person}")
    rows = [each.as_row() for each in found]
    say_list(as_json, {"rules": rows}, lines, "no rules yet: unified-flow rules add spam 'buy now'")


def add(
    rules: Words,
    user: options.User = "default",
    escalate: Annotated[
        bool, Option("--escalate", help="Messages that match go to a person for an answer.")
    ] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Flag words and phrases: messages with them are not answered.

    A single word is found in its inflections too (spam: spams, spammed, spamming). A * at an end
    stands for more letters: 'spam*' is every word that begins so, '*spam' every one that ends so.

    \b
    unified-flow rules add spam 'buy now' --user ada
    unified-flow rules add lawyer 'attorn*' --escalate
    xargs -d '\\n' unified-flow rules add --user ada < words.txt     a line a rule
    """
    from unified_flow.guardrails.user_rules import merged, parsed_rules

    more = parsed_rules(user, rules, escalates=escalate)
    _changed(user, lambda before: merged(before, more), home, as_json)


def delete(
    rules: Words,
    user: options.User = "default",
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Take rules away, however they are written: SPAM is spam.

    \b
    unified-flow rules delete spam
    """
    from unified_flow.guardrails.user_rules import missing, without

    if absent := missing(_store(home).rules(checked_user(user)), rules):
        raise NotFoundError(f"{user} has no rule {absent[0]!r}", hint="unified-flow rules list")
    _changed(user, lambda before: without(before, rules), home, as_json)


def set_switches(
    user: options.User = "default",
    control: Annotated[bool | None, Option("--on/--off", help="Answer at all.")] = None,
    chats: Annotated[bool | None, Option(help="Answer in chats.")] = None,
    comments: Annotated[bool | None, Option(help="Answer comments.")] = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Set where anything is answered; the default is everywhere.

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


def try_rules(
    text: Annotated[str, Argument(help="A message.")],
    user: options.User = "default",
    channel: Annotated[
        Literal["chat", "comment"] | None, Option(help="Where the message comes from.")
    ] = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Try the user's rules on a message. Without moderation; nothing is recorded.

    \b
    unified-flow rules test "B u y   n o w, no v1agra"

    Exit code 0 if it would be answered, else 1.
    """
    from unified_flow.guardrails.verdict import PASS, of_rules

    active = _store(home).active_rules(checked_user(user))
    matches = active.matcher.matches(text) if active else []
    result = of_rules(active.rules, active.matcher, channel, text) if active else PASS
    if as_json:
        found = [{"rule": m.rule.text, "kind": m.rule.kind, "hidden": m.disguised} for m in matches]
        shown = result.as_state() | {"matched_rule": result.matched_rule, "matches": found}
        say_object(shown)
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
    after = _store(home).change(checked_user(user), change)
    if as_json:
        say_object(after.as_row())
    else:
        note(_summary(after))


def _summary(rules: UserRules) -> str:
    return f"{rules.user_id} has {len(list(rules.rules()))} rules and {_switches(rules)}"


def _switches(rules: UserRules) -> str:
    if not rules.ai_control_enabled:
        return "answers nowhere"
    switches = {"chats": rules.ai_enabled_for_chats, "comments": rules.ai_enabled_for_comments}
    off = [name for name, on in switches.items() if not on]
    return f"answers, but not in {' and '.join(off)}" if off else "answers everywhere"


def show_counts(
    days: Annotated[int, Option(min=1, max=366, help="How many days, today included.")] = 7,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Blocks a day by rule, models asked again, silent failures.

    \b
    unified-flow guardrails show --days 30
    """
    from dataclasses import asdict

    from unified_flow.guardrails.decisions import stats_of

    found = stats_of(_store(home).by_day(days), days)
    if as_json:
        say_object(asdict(found))
        return
    rate = "-" if found.retry_rate is None else f"{found.retry_rate:.1%}"
    say(f"the last {days} days (UTC)")
    say(f"  messages         {found.messages:>7}")
    say(f"  blocked          {found.blocked:>7}")
    if found.shadowed:
        say(f"  in shadow only   {found.shadowed:>7}")
    say(f"  to a person      {found.escalated:>7}")
    say(f"  silent failures  {found.silent_failures:>7}")
    say(f"  asked again      {found.retried:>7}   {rate} of those that reached the model")
    if found.blocks:
        say("\nDAY         BLOCKS  RULE")
    for blocks in found.blocks:
        say(f"{blocks.day}  {blocks.count:>6}  {beginning(blocks.rule, 60)}")


def list_decisions(
    limit: options.Limit = 20,
    user: options.OnlyUser = None,
    decision: Annotated[
        Literal["ignore", "respond", "escalate"] | None, Option(help="Only these.")
    ] = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """The latest decisions, newest first, without secrets.

    \b
    unified-flow decisions list --decision ignore
    unified-flow decisions list --user ada --json
    """
    whose = checked_user(user) if user is not None else None
    found = _store(home).decisions(limit=limit or options.ALL, user_id=whose, decision=decision)
    lines = []
    for each in found:
        at = f"{each.created_at:%Y-%m-%d %H:%M}"
        head = f"{at}  {each.decision:<8}  {fit(one_line(each.user_id), 16)}  "
        rule = fit(one_line(each.matched_rule or each.outcome), 28)
        lines.append(f"{head}{rule}  {beginning(redact_text(each.message_text), 50)}")
    rows = [each.as_shown() for each in found]
    say_list(as_json, {"decisions": rows}, lines, "no decisions yet")
