"""One deed on many interventions: which ones, after asking, each for itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import typer

from interventions.cli.exits import Code, UsageError, code_of, report
from interventions.cli.retrying import say_how_it_went, say_retry_failed
from interventions.cli.screen import note, say, say_json
from interventions.cli.view import entry_view
from interventions.entry import Entry, names, worst_first
from interventions.errors import QueueError
from interventions.retry.contract import RetryFailedError, RetryResult
from interventions.retry.retry_one import StillOpenError
from interventions.timestamps import utc_now
from interventions.view.plaintext import clean
from interventions.view.query import parse

if TYPE_CHECKING:
    from interventions.queue import InterventionQueue


def each(
    queue: InterventionQueue,
    action: str,
    done_word: str,
    ids: list[str] | None,
    query: str | None,
    one: Callable[[str], Entry],
    *,
    yes: bool,
    as_json: bool,
    how: Mapping[str, RetryResult] | None = None,
) -> None:
    """Do it to each, go on after a refusal, and exit with the code of the first one.

    `how` is what became of turns that were resumed for it, by id.
    """
    wanted = _chosen(queue, ids, query)
    if query is not None:
        _confirm(action, wanted, yes=yes)
    done: list[Entry] = []
    failed: list[dict[str, object]] = []
    for name in wanted:
        try:
            done.append(one(name))
        except StillOpenError as error:
            entry, result = error.retried.entry, error.retried.result
            row = {"id": name, "error": str(error), "exit_code": int(Code.FAILED)}
            failed.append({**row, "result": result.as_dict()})
            say_how_it_went(entry, result)
            report(error)
        except QueueError as error:
            failed.append({"id": name, "error": str(error), "exit_code": int(code_of(error))})
            report(error)
        except RetryFailedError as error:
            failed.append({"id": name, "error": str(error), "exit_code": int(Code.FAILED)})
            say_retry_failed(queue.find(name), error)
        except ValueError as error:
            raise UsageError(str(error)) from error
    if as_json:
        now = utc_now()
        results = (
            {"results": {name: result.as_dict() for name, result in how.items()}} if how else {}
        )
        views = [entry_view(entry, now) for entry in done]
        say_json({done_word: views, "failed": failed, **results})
    else:
        for entry in done:
            say(f"{done_word} {entry['id']}")
    if failed:
        raise typer.Exit(int(str(failed[0]["exit_code"])))


def _chosen(queue: InterventionQueue, ids: list[str] | None, query: str | None) -> list[str]:
    if bool(ids) == (query is not None):
        raise UsageError(
            "name the interventions, by ids or by --query", hint="ids: interventions list"
        )
    if ids:
        return list(dict.fromkeys(ids))
    matching = parse(query or "").select(list(queue.entries()), utc_now())
    if not matching:
        note("nothing matches")
    return [entry["id"] for entry in worst_first(matching)]


def _confirm(action: str, wanted: list[str], *, yes: bool) -> None:
    if yes or not wanted:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{action} of {len(wanted)} interventions needs --yes without a terminal")
    if not typer.confirm(
        clean(f"{action} {len(wanted)} interventions ({names(wanted, 10)})?"), err=True
    ):
        raise UsageError("nothing was changed")
