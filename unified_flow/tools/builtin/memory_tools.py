"""`memory.create`, `memory.query` and `memory.update`, of the user whose turn it is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

from pydantic import Field

from unified_flow.config.tool_names import MEMORY_CREATE, MEMORY_QUERY, MEMORY_UPDATE
from unified_flow.errors import InputError, ToolArgumentError
from unified_flow.lib.text import language_of
from unified_flow.lib.text.lexicon import any_language, phrases_of
from unified_flow.tools import Access, Arguments, Tool, ToolOutput, claim, current_caller
from unified_flow.turns.memory import MAX_TEXT, MemoryRecord, MemoryStore, SecretRefusedError

ALL = "*"


class CreateArguments(Arguments):
    text: str = Field(
        min_length=1,
        max_length=MAX_TEXT,
        description="what to remember, as a statement; no secrets",
    )


class QueryArguments(Arguments):
    query: str = Field(
        min_length=1, max_length=2000, description="what to look for, in words; * for all"
    )
    limit: int = Field(default=5, ge=1, le=50, description="how many memories at most")


class UpdateArguments(Arguments):
    id: str = Field(min_length=1, max_length=100, description="of the memory, by memory.query")
    text: str = Field(min_length=1, max_length=MAX_TEXT, description="what it is to say instead")


def memory_tools(store: MemoryStore) -> Iterable[Tool]:
    async def create(args: CreateArguments) -> ToolOutput:
        return await _kept(MEMORY_CREATE, args.text, store.create)

    async def query(args: QueryArguments) -> ToolOutput:
        look = store.newest if args.query == ALL else partial(store.search, text=args.query)
        found = await asyncio.to_thread(look, current_caller().user_id, limit=args.limit)
        return ToolOutput(
            {"query": args.query, "memories": [memory.model_dump() for memory in found]},
            [claim(m.text, _source(m.id), m.score) for m in found],
        )

    async def update(args: UpdateArguments) -> ToolOutput:
        return await _kept(MEMORY_UPDATE, args.text, partial(store.update, memory_id=args.id))

    reads, writes = frozenset({Access.READS}), frozenset({Access.WRITES})
    for name, description, arguments, access, run in (
        (MEMORY_CREATE, "Remember something about the user for later turns.", CreateArguments,
         writes, create),
        (MEMORY_QUERY, "Search what is remembered about the user.", QueryArguments, reads, query),
        (MEMORY_UPDATE, "Change something that is remembered about the user.", UpdateArguments,
         writes, update),
    ):  # fmt: skip
        yield Tool(name, description, arguments, access, run, personal=True)


async def _kept(tool: str, text: str, keep: Callable[..., MemoryRecord | None]) -> ToolOutput:
    """A secret is refused in the answer. Raises ToolArgumentError for what cannot be kept, and for
    an id that is not there."""
    caller = current_caller()
    try:
        turn = caller.turn_id or None
        kept = await asyncio.to_thread(keep, caller.user_id, text=text, turn_id=turn)
    except SecretRefusedError:
        why = phrases_of(language_of(text)).no_secrets
        return ToolOutput({"id": None, "text": why}, [claim(why, tool)])
    except InputError as exc:
        raise ToolArgumentError(f"{tool}: {exc}", hint=exc.hint) from exc
    if kept is None:
        raise ToolArgumentError(
            f"{tool}: there is no memory of that id", hint=f"{MEMORY_QUERY} lists the ids."
        )
    return ToolOutput({"id": kept.id, "text": kept.text}, [claim(kept.text, _source(kept.id))])


def _source(memory_id: str) -> str:
    return f"memory:{memory_id}"


def text_to_remember(question: str) -> str | None:
    """What follows "remember that"; a question is none ("remember that film?")."""
    match = _remember_that().match(question)
    if match is None or match["text"].endswith("?"):
        return None
    return match["text"]


@cache
def _remember_that() -> re.Pattern[str]:
    every = any_language()
    return re.compile(
        rf"^\W*{every.remember}\s*(?::|,?\s*{every.that})\s*(?P<text>\S.*?)\s*$",
        re.IGNORECASE | re.DOTALL,
    )


def is_requested_by(tool: str, args: Mapping[str, Any], question: str) -> bool:
    """Whether the question asks for this very call: `memory.create` of all the words that follow
    "remember that", of which a part may say the opposite. Nothing that a document or a page says
    can be among them, since the question counts as it was typed."""
    if tool != MEMORY_CREATE or (wanted := text_to_remember(question)) is None:
        return False
    return _plain(str(args.get("text", ""))) == _plain(wanted)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".!")
