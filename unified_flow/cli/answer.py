"""An answer at a terminal: its passages under their headings, the decisive sentences marked, and
places that can be clicked from where one stands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from interventions.cli.terminal import paint, say, say_painted
from interventions.plaintext import clean, one_line
from interventions.secrets.redaction import redact_for_asker
from unified_flow.cli.terminal import on_terminal, wrapped
from unified_flow.lib.blocks import Block, blocks, without_fences
from unified_flow.turns.passage import Passage, path_of, title_of
from unified_flow.turns.results import Citation
from unified_flow.turns.sources import citation_for_asker, retrieved_passages, searches, unread_in
from unified_flow.turns.turn import Turn

_OPEN, _CLOSE = "\ue000", "\ue001"  # of the sentence, while lines are broken
_MARGIN = "    "
_PROSE = 40  # characters of a line, on average; shorter ones are broken on purpose
_FURTHER = 7  # sections named after those that are quoted
_NEAR = 0.5  # of the best passage's score, for one of them


def show_answer(turn: Turn, roots: Sequence[Path] = ()) -> None:
    """The response, the passages that it quotes laid out; then the citations that it does not name,
    or the sections that come near.

    `roots` are the documents' roots, which places are relative to.
    """
    rest = redact_for_asker(turn.response or "")
    left = []
    for citation in map(citation_for_asker, turn.citations):
        before, found, after = rest.partition(
            f"{title_of(citation.heading, citation.source)}\n\n{citation.passage}"
        )
        if not found or not citation.passage:
            left.append(citation)
            continue
        if before.strip():
            say(wrapped(clean(before.strip())) + "\n")
        _show_passage(citation, roots)
        rest = after
    quotes_are_shown = len(left) < len(turn.citations)
    if rest.strip():
        say(wrapped(clean(_located(rest.strip(), turn, roots))))
    if named := [each for each in left if each.source not in rest]:
        say("\nSources:")
        for citation in named:
            heading = f"  {one_line(citation.heading)}" if citation.heading else ""
            say(f"  {clickable(citation.source, roots)}{heading}")
            say(wrapped(f"  “{one_line(citation.quote)}”"))
    elif quotes_are_shown and (further := _further(turn)):
        say("\nSee also:" if rest.strip() else "See also:")
        for each in further:
            place = clickable(each.source(), roots)
            heading = redact_for_asker(one_line(each.heading))
            say(wrapped(f"- {title_of(heading, place)}"))


def _further(turn: Turn) -> list[Passage]:
    """What was found beside the sections that are quoted, a passage of each section."""
    quoted = {(path_of(each.source), each.heading) for each in turn.citations}
    found: dict[tuple[str, str], Passage] = {}
    for each in retrieved_passages(turn):
        found.setdefault((each.path, each.heading), each)
    near = _NEAR * max((each.score for each in found.values()), default=0.0)
    others = [each for key, each in found.items() if key not in quoted and each.score >= near]
    return others[:_FURTHER]


def _show_passage(citation: Citation, roots: Sequence[Path]) -> None:
    place = clickable(citation.source, roots)
    if not on_terminal():
        say(title_of(one_line(citation.heading), place))
        say(f"\n{citation.passage}\n")
        return
    if citation.heading:
        for line in wrapped(one_line(citation.heading)).split("\n"):
            say_painted(paint(line, "bold"))
    say_painted(paint(place, "medium") + "\n")
    say_painted(_laid_out(clean(citation.passage), clean(citation.quote)) + "\n")


def clickable(source: str, roots: Sequence[Path]) -> str:
    """`source` relative to the working directory, where its file is found under one of `roots`."""
    path = path_of(source)
    here = (root.parent / path for root in roots)
    file = next((each for each in here if each.exists()), None)
    if file is None:
        return one_line(source)
    near = os.path.relpath(file)
    far = near.startswith("../../..")
    return one_line(f"{file if far else near}{source[len(path) :]}")


def _located(text: str, turn: Turn, roots: Sequence[Path]) -> str:
    """The text with the places of what was found, or could not be read, as they can be clicked."""
    for _, passages, _ in searches(turn):
        for source in {passage.source() for passage in passages}:
            text = text.replace(f"({source})", f"({clickable(source, roots)})")
    for document in unread_in(turn.sections):
        place, found, why = document.partition(": ")
        text = text.replace(f"\n- {document}", f"\n- {clickable(place, roots)}{found}{why}")
    return text


def _laid_out(passage: str, quote: str) -> str:
    """The passage within the width of the terminal, the quote marked, code without its fences."""
    before, found, after = passage.partition(quote)
    text = f"{before}{_OPEN}{found}{_CLOSE}{after}" if found else passage
    parts: list[str] = []
    last: Block | None = None
    for block in blocks(text):
        if last is not None:
            gap = text[last.start : block.start]
            apart = len(gap) - len(gap.rstrip()) > 1 or "code" in (last.kind, block.kind)
            parts.append("\n\n" if apart else "\n")
        parts.append(_shown(text, block))
        last = block
    return "\n".join(_painted("".join(parts).split("\n")))


def _shown(text: str, block: Block) -> str:
    body = text[block.start : block.end].rstrip()
    lines = body.split("\n")
    if block.kind == "code":
        return "\n".join(f"{_MARGIN}{line}" if line else "" for line in without_fences(lines))
    margins = {len(line) - len(line.lstrip()) for line in lines}
    is_prose = block.kind == "text" and len(margins) == 1 and len(body) > _PROSE * len(lines)
    return wrapped(" ".join([lines[0], *map(str.strip, lines[1:])]) if is_prose else body)


def _painted(lines: list[str]) -> Iterator[str]:
    """The lines with marked words painted, each line for itself."""
    inside = False
    for line in lines:
        shown = ""
        for piece in re.split(f"([{_OPEN}{_CLOSE}])", line):
            if piece in (_OPEN, _CLOSE):
                inside = piece == _OPEN
            elif piece:
                shown += paint(piece, "bold") if inside else piece
        yield shown
