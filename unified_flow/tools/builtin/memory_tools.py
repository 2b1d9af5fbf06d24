"""`memory.create`, `memory.query` and `memory.update`, of the user whose turn it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from pydantic import Field

from unified_flow.config.tool_names import MEMORY_CREATE, MEMORY_QUERY, MEMORY_UPDATE
from unified_flow.errors import InputError, ToolArgumentError
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.tools.caller import calling
from unified_flow.turns.memory import MAX_TEXT, MemoryStore
from unified_flow.turns.results import Claim

ALL = "*"
CREATE, QUERY, UPDATE = MEMORY_CREATE, MEMORY_QUERY, MEMORY_UPDATE


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
        """Raises ToolArgumentError for what may not be remembered."""
        caller = calling()
        try:
            made = await asyncio.to_thread(
                store.create, caller.user_id, args.text, turn_id=caller.turn_id or None
            )
        except InputError as exc:
            raise ToolArgumentError(f"{CREATE}: {exc}", hint=exc.hint) from exc
        return _output(made.id, made.text)

    async def query(args: QueryArguments) -> ToolOutput:
        look = store.newest if args.query == ALL else partial(store.search, text=args.query)
        found = await asyncio.to_thread(look, calling().user_id, limit=args.limit)
        return ToolOutput(
            {"query": args.query, "memories": [memory.model_dump() for memory in found]},
            [Claim(claim=m.text, confidence=m.score, source=_source(m.id)) for m in found],
        )

    async def update(args: UpdateArguments) -> ToolOutput:
        """Raises ToolArgumentError for an id that is not there, and as `create`."""
        caller = calling()
        try:
            changed = await asyncio.to_thread(
                store.update, caller.user_id, args.id, args.text, turn_id=caller.turn_id or None
            )
        except InputError as exc:
            raise ToolArgumentError(f"{UPDATE}: {exc}", hint=exc.hint) from exc
        if changed is None:
            raise ToolArgumentError(
                f"{UPDATE}: there is no memory {args.id!r}", hint=f"{QUERY} tells the ids."
            )
        return _output(changed.id, changed.text)

    yield Tool(
        name=CREATE,
        description="Remember something about the user for later turns.",
        arguments=CreateArguments,
        access=frozenset({Access.WRITES}),
        run=create,
        personal=True,
    )
    yield Tool(
        name=QUERY,
        description="Search what is remembered about the user.",
        arguments=QueryArguments,
        access=frozenset({Access.READS}),
        run=query,
        personal=True,
    )
    yield Tool(
        name=UPDATE,
        description="Change something that is remembered about the user.",
        arguments=UpdateArguments,
        access=frozenset({Access.WRITES}),
        run=update,
        personal=True,
    )


def _output(memory_id: str, text: str) -> ToolOutput:
    claim = Claim(claim=text, confidence=1.0, source=_source(memory_id))
    return ToolOutput({"id": memory_id, "text": text}, [claim])


def _source(memory_id: str) -> str:
    return f"memory:{memory_id}"
