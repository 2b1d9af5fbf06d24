"""The memory tools through a toolbox: of the user whose turn it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from unified_flow.errors import ToolArgumentError
from unified_flow.tools import Access, Caller, ToolOutput
from unified_flow.tools.builtin.memory_tools import memory_tools
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.memory import MemoryStore
from unified_flow.turns.results import ToolRequest
from unified_flow.turns.texts import TextFolder

ANNA = Caller(user_id="anna", session_id="s", turn_id=4)
BO = Caller(user_id="bo", session_id="s", turn_id=5)


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore(TextFolder(tmp_path / "memory"))


def call(store: MemoryStore, caller: Caller, tool: str, **args: object) -> ToolOutput:
    box = Toolbox(memory_tools(store))
    return asyncio.run(box.call(*box.check(ToolRequest(tool=tool, args=args)), caller))


def test_create_query_update(store: MemoryStore) -> None:
    made = call(store, ANNA, "memory.create", text="Works on Ubuntu 22.04")
    memory_id = made.result["id"]
    assert made.claims[0].source == f"memory:{memory_id}"
    call(store, ANNA, "memory.update", id=memory_id, text="Works on Ubuntu 24.04")
    found = call(store, ANNA, "memory.query", query="which Ubuntu")
    assert [claim.claim for claim in found.claims] == ["Works on Ubuntu 24.04"]
    assert found.result["memories"][0]["id"] == memory_id
    assert store.all("anna")[0].turn_id == 4


def test_another_user_neither_sees_nor_changes_it(store: MemoryStore) -> None:
    memory_id = call(store, ANNA, "memory.create", text="Likes tea").result["id"]
    assert call(store, BO, "memory.query", query="tea").claims == []
    with pytest.raises(ToolArgumentError, match="no memory"):
        call(store, BO, "memory.update", id=memory_id, text="Likes coffee")
    assert [record.text for record in store.all("anna")] == ["Likes tea"]


def test_nobody_can_name_another_user_in_the_arguments(store: MemoryStore) -> None:
    with pytest.raises(ToolArgumentError, match="unknown argument 'user_id'"):
        call(store, BO, "memory.query", query="tea", user_id="anna")


def test_a_secret_is_refused_and_not_repeated(store: MemoryStore) -> None:
    """In the answer: asking for it is no failure."""
    found = call(store, ANNA, "memory.create", text="password: hunter2hunter2")
    assert found.claims[0].claim.startswith("Nothing was remembered: this seems to hold a password")
    assert "hunter2" not in str(found)
    text = "Retenez que le mot de passe de la base est dans password: hunter2hunter2"
    found = call(store, ANNA, "memory.create", text=text)
    assert found.claims[0].claim.startswith("Rien n'a été retenu")
    kept = call(store, ANNA, "memory.create", text="likes tea").result["id"]
    call(store, ANNA, "memory.update", id=kept, text="password: hunter2hunter2")
    assert [memory.text for memory in store.all("anna")] == ["likes tea"]


def test_what_they_touch(store: MemoryStore) -> None:
    access = {tool.name: tool.access for tool in memory_tools(store)}
    assert access == {
        "memory.create": {Access.WRITES},
        "memory.query": {Access.READS},
        "memory.update": {Access.WRITES},
    }
