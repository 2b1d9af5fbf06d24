"""A turn on one screen: a line a phase, each passage once, and the answer's beginning; and its
phases over time."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from interventions.plaintext import fit, one_line
from interventions.secrets.redaction import WHOLE, redact
from interventions.view.ribbon import took_text
from unified_flow.cli.terminal import beginning, counted
from unified_flow.turns.context_page import NUMBER, markdown
from unified_flow.turns.events import AnyEvent, PhaseCompleted, PhaseFailed, TurnStarted
from unified_flow.turns.passage import passages_in
from unified_flow.turns.sources import retrieved_passages
from unified_flow.turns.turn import Turn

PASSAGES, ANSWER_LINES, FAILURE_LINES = 5, 5, 3
DECISIVE = ("query_type", "decision", "reasoning", "issues", "store")
BAR = "━"
LABEL = 22


def screen(turn: Turn, events: Sequence[AnyEvent], width: int) -> Iterator[str]:
    """Lines of at most `width` characters, without secrets."""
    for event in events:
        yield from (fit(line, width).rstrip() for line in _lines(event, width))
    found = retrieved_passages(turn)
    if found:
        yield ""
        yield f"{counted(len(found), 'passage')}:"
    for passage in found[:PASSAGES]:
        text = redact(passage.heading or passage.text, WHOLE)
        yield fit(f"  {passage.source()}  {beginning(text, width)}", width).rstrip()
    if turn.response:
        yield ""
        answer = [
            row
            for line in redact(turn.response, WHOLE).splitlines()
            for row in textwrap.wrap(line, width)
        ]
        yield from answer[:ANSWER_LINES]
        if len(answer) > ANSWER_LINES:
            yield f"[… {counted(len(answer) - ANSWER_LINES, 'more line')}]"


def unknown_fields(events: Sequence[AnyEvent]) -> list[str]:
    """What another version of this program wrote and this one passes over."""
    found = (f"{event.event}.{name}" for event in events for name in event.model_extra or ())
    return list(dict.fromkeys(one_line(name)[:80] for name in found))


def _lines(event: AnyEvent, width: int) -> list[str]:
    match event:
        case TurnStarted():
            began = f"{event.at:%F %T} UTC, session {event.session_id}, request {event.request_id}"
            fork = [f"Fork of turn {event.fork_of}"] if event.fork_of else []
            question = beginning(redact(event.question, WHOLE), width)
            return [f"Turn {event.turn_id}: {question}", began, *fork, ""]
        case PhaseCompleted():
            took = took_text(event.duration_ms)
            return [f"{_label(event)} {took:>10}  {beginning(_finding(event), width)}"]
        case PhaseFailed():
            message = redact(f"{event.error_type}: {event.error_message}", WHOLE)
            hint = redact(event.hint or "", WHOLE)
            more = (("hint:", hint), ("intervention", event.intervention_id))
            lines = textwrap.wrap(message, width - 2)[:FAILURE_LINES]
            lines += [f"{name} {text}" for name, text in more if text]
            took = took_text(event.duration_ms)
            return [f"{_label(event)} {took:>10}  failed", *(f"  {line}" for line in lines)]
        case _:
            return str(redact(markdown(event, clean=True), WHOLE)).strip().splitlines()[:1]


def _label(event: PhaseCompleted | PhaseFailed) -> str:
    again = f" ({event.visit})" if event.visit > 1 else ""
    return f"{NUMBER.get(event.phase, '-')} {event.phase + again:<{LABEL - 2}}"


def _finding(event: PhaseCompleted) -> str:
    """What decides most, of what the phase found."""
    found = redact(event.output, WHOLE)
    if isinstance(found, list):
        return ", ".join(map(_result, found))
    if event.phase == "synthesis":
        cited = counted(len(found.get("citations") or ()), "citation")
        return "no answer in the sources" if found.get("abstained") else cited
    tools = [each["tool"] for each in found.get("tool_requests") or ()]
    values = (found[key] for key in DECISIVE if found.get(key))
    words = ["; ".join(value) if isinstance(value, list) else value for value in values]
    first = " ".join(filter(None, [*words[:1], *tools]))
    return ": ".join(filter(None, [first, *words[1:]]))


def _result(result: dict[str, Any]) -> str:
    passages = passages_in(result.get("result"))
    if passages:
        return f"{result['tool']} ({counted(len(passages), 'passage')})"
    return f"{result['tool']} ({beginning(str(result.get('result')), 40)})"


def timeline(events: Sequence[AnyEvent], width: int) -> Iterator[str]:
    """The phases of each run as bars, in proportion to its time; a new run where the turn was
    resumed or taken over."""
    run: list[PhaseCompleted | PhaseFailed] = []
    for event in events:
        if isinstance(event, PhaseCompleted | PhaseFailed):
            run.append(event)
            continue
        text = "" if isinstance(event, TurnStarted) else redact(markdown(event), WHOLE).strip()
        if text:
            yield from _bars(run, width)
            run = []
            yield fit(text.splitlines()[0], width).rstrip()
    yield from _bars(run, width)


def _bars(run: Sequence[PhaseCompleted | PhaseFailed], width: int) -> Iterator[str]:
    if not run:
        return
    spans = [(_began(each), each.at) for each in run]
    first = min(began for began, _ in spans)
    whole = max(max(ended for _, ended in spans) - first, timedelta(microseconds=1))
    room = max(width - LABEL - 22, 10)
    for event, (began, ended) in zip(run, spans, strict=True):
        at = min(int((began - first) / whole * room), room - 1)
        long = max(1, round((ended - began) / whole * room))
        bar = f"{' ' * at}{BAR * min(long, room - at)}"
        failed = " failed" if isinstance(event, PhaseFailed) else ""
        yield f"{_label(event)} {bar:<{room}} {took_text(event.duration_ms):>10}{failed}"


def _began(event: PhaseCompleted | PhaseFailed) -> datetime:
    return event.at - timedelta(milliseconds=event.duration_ms)
