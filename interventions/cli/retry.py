"""`retry`: a turn goes on from the phase that failed, or every turn that waits for the same fix.

What a person at a terminal is asked on the way: what to do about a call that may have had its
effect, and a text to edit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click
import typer

from interventions.cli import options, terminal
from interventions.cli.terminal import Code, UsageError
from interventions.entry import Entry, is_open, short_id
from interventions.errors import NotFoundError, QueueError, StorageError
from interventions.plaintext import one_line
from interventions.retry import contract, retries
from interventions.retry.contract import RetryRequest, RetryResult
from interventions.secrets.redaction import redact_for_asker, redact_text
from interventions.storage.disk import keep_draft
from interventions.view.groups import other_failures

if TYPE_CHECKING:
    from interventions.queue import InterventionQueue


def retry(
    intervention_id: options.Id,
    note_text: options.NoteText = "",
    everything: options.EveryTurn = False,
    canary: options.Canary = None,
    jobs: options.Jobs = 4,
    from_phase: options.FromPhase = None,
    edit: options.Edit = False,
    **flags: Unpack[options.ResumeFlags],
) -> None:
    """Resume the turn; what it gets past is resolved, verified."""
    if everything and edit:
        raise UsageError("--edit changes one turn, and --all is about many")
    if canary is not None and not everything:
        raise UsageError("--canary says which of many turns goes first: use it with --all")
    queue = options.the_queue(flags["home"])
    entry = retries.entry_to_retry(queue, intervention_id, flags["expected_version"])
    why = note_text or f"retried, and it got past {entry['phase']}"
    request = replace(retry_request(entry, why, flags), from_phase=from_phase)
    if everything:
        # Each turn asked a question of its own.
        _retry_all(queue, entry, replace(request, ask=None, started=None), canary, jobs, flags)
        return
    request = replace(request, answer=note_text or None, edit=edit_text if edit else None)
    view, as_json = {"id": entry["id"], "turn_id": entry["turn_id"]}, flags["as_json"]
    try:
        after, result = retries.retry_entry(queue, request)
    except QueueError as error:
        if as_json:
            refused = {"error": redact_text(str(error)), "hint": terminal.with_home(error.hint)}
            terminal.say_json({**view, "resolved": False, "refused": refused})
        raise
    except KeyboardInterrupt:
        terminal.note(f"interrupted; to go on: interventions retry {short_id(entry['id'])}")
        raise
    resolved = not is_open(after)
    say_result(entry, result, with_response=not as_json)
    if as_json:
        ended = {"result": result.as_dict(), "why_open": None if resolved else result.why_open}
        terminal.say_json({**view, "resolved": resolved, **ended})
    elif resolved:
        terminal.say(f"resolved {entry['id']} (verified)")
    if not resolved:
        terminal.report(contract.StillOpenError(after, result))
    if code := code_of_results([result], resolved=resolved):
        raise typer.Exit(code)


def retry_request(entry: Entry, why: str, flags: options.ResumeFlags) -> RetryRequest:
    """The retry that the options ask for; on its way the resumer can tell and ask a person."""

    def started(phase: str, changed: Sequence[str]) -> None:
        terminal.note(f"turn {entry['turn_id']} goes on at {phase}")
        differences = "; ".join(changed) or "nothing that is recorded"
        terminal.note(f"changed since it stopped: {one_line(differences)}")

    return RetryRequest(
        *(entry["turn_id"], entry["id"], why),
        grant=flags["grant"],
        rerun_tools=flags["rerun_tools"],
        tools_done=flags["tools_done"],
        by=flags["by"],
        via="cli",
        options=flags["of_resumer"],
        ask=ask if terminal.is_asked() else None,
        started=None if flags["as_json"] else started,
    )


def code_of_results(results: Iterable[RetryResult], *, resolved: bool = True) -> Code:
    """1 for a turn that failed again or later, 4 for a failure that reached no queue."""
    failed = [result for result in results if result.failed]
    if any(result.passed and result.intervention_id is None for result in failed):
        return Code.QUEUE
    return Code.FAILED if failed or not resolved else Code.DONE


def _retry_all(
    queue: InterventionQueue,
    entry: Entry,
    request: RetryRequest,
    canary: int | None,
    jobs: int,
    flags: options.ResumeFlags,
) -> None:
    contract.find_resumer()
    turns = retries.waiting_turns(entry, queue.entries())
    others = [turn for turn in turns if not turn.alike]
    if others and not flags["yes"] and not _takes_others(others):
        turns = [turn for turn in turns if turn.alike]
    else:
        others = []

    def again() -> str:
        holders = (queue.find(turn.entry["id"]) for turn in turns)
        return f"interventions retry {short_id(next(filter(is_open, holders), entry)['id'])} --all"

    named = {turn.turn_id: turn.named for turn in turns}
    whole: dict[str, object] = {"id": entry["id"], "not_alike": [turn.turn_id for turn in others]}
    view = whole if flags["as_json"] else None
    retry_turns(named, queue.home, request, canary=canary, jobs=jobs, again=again, view=view)


def retry_turns(
    turns: dict[int, str | None],
    home: Path,
    request: RetryRequest,
    *,
    canary: int | None,
    jobs: int,
    again: Callable[[], str],
    view: dict[str, object] | None,
) -> None:
    """`retry_all`, told to a person, or as one object with what is in `view`. `again` is the
    command that goes on with what is left. Exits with 1 if a turn failed, in whatever phase.

    Raises UsageError for a `canary` that is not among the turns.
    """
    if canary is not None:
        canary = max(turns) if canary == options.NEWEST else canary
        if canary not in turns:
            raise UsageError(f"--canary: turn {canary} is not among the {len(turns)} that wait")
        turns = {canary: turns[canary]} | turns
    if view is None and len(turns) > 1:
        terminal.note(f"{len(turns)} turns wait for this fix; turn {next(iter(turns))} goes first")
    shown = _show if view is None else None
    outcomes, interrupted = retries.retry_all(
        turns, home, request, jobs=jobs, progress=shown, interrupted=_say_interrupted
    )
    if view is not None:
        rows: dict[str, list[dict[str, object]]] = {"passed": [], "failed": [], "skipped": []}
        for outcome in outcomes:
            rows[outcome.status].append({"turn_id": outcome.turn_id, "what": outcome.what})
        terminal.say_json(view | rows | {"interrupted": interrupted})
    else:
        terminal.say(retries.tally(outcomes))
    if any(isinstance(outcome.error, NotFoundError) for outcome in outcomes):
        terminal.note("a turn that is gone can never pass; which those are: interventions doctor")
    left = [one.turn_id for one in outcomes if one.status == "skipped" and one.error is None]
    if left and not interrupted:  # because the first one failed
        terminal.note(f"is it that turn alone? another first: {again()} --canary {left[0]}")
    if interrupted:
        terminal.note(f"interrupted; to go on: {again()}")
        # Running turns are not waited for: their journals hold what they have done, and no lock
        # outlives this process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(Code.INTERRUPTED)
    if code := _code_of_all(outcomes):
        raise typer.Exit(code)


def _takes_others(turns: Sequence[retries.WaitingTurn]) -> bool:
    """Whether to retry turns that failed with other failures. Nobody to ask means no."""
    holders = {turn.entry["id"]: turn.entry for turn in turns}
    count = f"{len(turns)} more turn{'s' if len(turns) > 1 else ''}"
    terminal.note(f"{count} failed with other failures, for which this may be no fix:")
    terminal.note_others(other_failures(holders.values()))
    if terminal.is_asked():
        return terminal.choose("retry them, too? [y/N]: ", ("yes", "no"), default="no") == "yes"
    terminal.note("they are not tried; --yes takes them, too")
    return False


def _code_of_all(outcomes: Sequence[retries.RetriedTurn]) -> Code:
    """A skipped turn is no failure if others passed, unless the storage failed."""
    if code := code_of_results(one.result for one in outcomes if one.result is not None):
        return code
    refused = [outcome.error for outcome in outcomes if outcome.error is not None]
    if any(isinstance(error, StorageError) for error in refused):
        return Code.QUEUE
    if refused and not any(outcome.status == "passed" for outcome in outcomes):
        return terminal.code_of(refused[0])
    return Code.DONE


def _say_interrupted(running: int) -> None:
    if running:
        patience = f"for {running} turns that run, {retries.PATIENCE_S:.0f} s at most"
        terminal.note(f"interrupted: waiting {patience}; Ctrl-C again stops them now")


def _show(outcome: retries.RetriedTurn, done: int, total: int) -> None:
    terminal.note(f"{done}/{total} turn {outcome.turn_id}: {outcome.status}: {outcome.what}")


def say_result(entry: Entry, result: RetryResult, *, with_response: bool = True) -> None:
    """What became of the turn, and the answer that it got, if it got one."""
    for line in retries.result_lines(entry, result):
        terminal.note(line)
    if result.failed and result.passed and result.intervention_id is not None:
        terminal.note(f"  next: interventions show {short_id(result.intervention_id)}")
    if result.response and with_response:
        terminal.say(redact_for_asker(result.response))


def ask(call: contract.BegunCall) -> contract.CallDecision:
    """What to do about the call. Ctrl-C goes through; the end of input leaves it."""
    for line in str(call).splitlines():
        terminal.note(line)
    done = "treat it as [d]one, " if call.unfinished else ""
    question = f"[r]un it again, {done}or [l]eave the turn as it is? "
    decisions: dict[str, contract.CallDecision] = {"run": "again", "done": "done", "leave": "leave"}
    return decisions[
        terminal.choose(question, [word for word in decisions if done or word != "done"])
    ]


def edit_text(name: str, text: str) -> str:
    """What the person saved of `text`; `name` is the file's. Raises UsageError, also if nothing
    was changed: that is how one thinks better of it. What cannot be read is kept."""
    if not (os.environ.get("VISUAL") or os.environ.get("EDITOR") or sys.stdin.isatty()):
        raise UsageError("--edit needs a terminal, or $EDITOR")
    before = text.encode()
    try:
        saved = click.edit(before, extension=f"-{name}")
    except (click.ClickException, ValueError) as exc:
        what = f"the editor cannot be started, or failed; nothing has happened: {exc}"
        raise UsageError(what) from exc
    if saved is None or saved == before:
        raise UsageError("nothing was edited; nothing has happened", hint="leave out --edit")
    try:
        return saved.decode()
    except UnicodeDecodeError as exc:
        why = "what was saved is not UTF-8; nothing has happened"
        raise UsageError(why, hint=keep_draft(name, saved)) from exc
