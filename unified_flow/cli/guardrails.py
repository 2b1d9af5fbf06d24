"""`unified-flow guardrails` and `decisions`: what was answered, what was not, and why."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from interventions.cli.terminal import note, say
from interventions.secrets.redaction import redact_text
from unified_flow.cli import options
from unified_flow.cli.rules import store_at, user_named
from unified_flow.cli.screen import beginning


def stats(
    days: Annotated[int, typer.Option(min=1, max=366, help="How many days, today included.")] = 7,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Blocks a day by rule, how often a model was asked again, and silent failures.

    \b
    unified-flow guardrails stats --days 30
    """
    from dataclasses import asdict

    from unified_flow.guardrails.decisions import stats_of

    found = stats_of(store_at(home).by_day(days), days)
    if as_json:
        say(json.dumps(asdict(found), ensure_ascii=False))
        return
    rate = "-" if found.retry_rate is None else f"{found.retry_rate:.1%}"
    say(f"the last {days} days (UTC)")
    say(f"  messages         {found.messages:>7}")
    say(f"  blocked          {found.blocked:>7}")
    say(f"  to a person      {found.escalated:>7}")
    say(f"  silent failures  {found.silent_failures:>7}")
    say(f"  asked again      {found.retried:>7}   {rate} of those that reached the model")
    if found.blocks:
        say("\nDAY         BLOCKS  RULE")
    for blocks in found.blocks:
        say(f"{blocks.day}  {blocks.count:>6}  {beginning(blocks.rule, 60)}")


def list_decisions(
    limit: Annotated[int, typer.Option(min=1, help="How many at most, newest first.")] = 20,
    user: Annotated[
        str | None, typer.Option("--user", help="Only this user's.", show_default=False)
    ] = None,
    decision: Annotated[
        Literal["ignore", "respond", "escalate"] | None,
        typer.Option(help="Only these.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """The latest decisions, newest first; secrets in messages are redacted.

    \b
    unified-flow decisions list --decision ignore
    unified-flow decisions list --user ada --json
    """
    whose = user_named(user) if user is not None else None
    found = store_at(home).decisions(limit=limit, user_id=whose, decision=decision)
    if as_json:
        rows = [each.as_shown() for each in found]
        say(json.dumps({"decisions": rows}, ensure_ascii=False))
    elif not found:
        note("no decisions yet")
    for each in found if not as_json else []:
        at = f"{each.created_at:%Y-%m-%d %H:%M}"
        head = f"{at}  {each.decision:<8}  {beginning(each.user_id, 16):<16}  "
        rule = f"{beginning(each.matched_rule or each.outcome, 28):<28}"
        say(f"{head}{rule}  {beginning(redact_text(each.message_text), 50)}")
