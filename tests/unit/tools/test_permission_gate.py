"""May this tool run? The decision, the grants, and the person who is asked."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from unified_flow.errors import ConfigError, ToolDeniedError
from unified_flow.shared.database import Database
from unified_flow.shared.shared_texts import SharedTexts
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.tools.grants import NAME, Grant, GrantStore, Scope
from unified_flow.tools.permission_gate import (
    PermissionGate,
    PermissionReply,
    decide,
)
from unified_flow.turns.texts import TextFolder

READS, WRITES, NETWORK = Access.READS, Access.WRITES, Access.NETWORK


@pytest.mark.parametrize(
    ("name", "access", "allow", "deny", "verdict"),
    [
        ("doc.search", {READS}, [], [], "allowed"),
        ("calculate", set(), [], [], "allowed"),
        ("doc.search", {READS}, ["*"], ["doc.*"], "denied"),
        ("file.write", {WRITES}, [], [], "ask"),
        ("web.get", {NETWORK}, [], [], "ask"),
        ("web.get", {READS, NETWORK}, [], [], "ask"),
        ("file.write", {WRITES}, ["file.*"], [], "allowed"),
        ("file.write", {WRITES}, ["file"], [], "ask"),
        ("file.write", {WRITES}, ["FILE.*"], [], "ask"),
        ("file.write", {WRITES}, ["file.*"], ["*"], "denied"),
    ],
)
def test_the_decision(
    name: str,
    access: set[Access],
    allow: list[str],
    deny: list[str],
    verdict: str,
) -> None:
    decision = decide(name, frozenset(access), allow=tuple(allow), deny=tuple(deny))
    assert decision.verdict == verdict
    assert decision.why


async def _run(args: Arguments) -> ToolOutput:
    raise AssertionError("a gate runs nothing")


def tool(name: str = "file.write", access: Access = WRITES) -> Tool:
    return Tool(name, "Write a file.", Arguments, frozenset({access}), _run)


class Person:
    """Answers as told, and remembers what was asked."""

    def __init__(self, *replies: PermissionReply) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    async def __call__(self, tool: Tool, args: Mapping[str, Any], why: str) -> PermissionReply:
        self.why = why
        self.asked.append((tool.name, args))
        return self.replies.pop(0)


def admit(gate: PermissionGate, session: str = "s", granted: Scope | None = None) -> str:
    args = {"path": "a"}
    decision = asyncio.run(gate.admit(tool(), args, session_id=session, granted=granted))
    return f"{decision.verdict}: {decision.why}"


@pytest.fixture
def store(tmp_path: Path) -> GrantStore:
    return GrantStore(TextFolder(tmp_path / "state"))


@pytest.fixture(params=["file", "postgres"])
def kept(request: pytest.FixtureRequest, store: GrantStore) -> Iterator[GrantStore]:
    """What holds of every place that grants are kept in."""
    if request.param == "file":
        yield store
        return
    with closing(Database(request.getfixturevalue("database_url"), "it")) as database:
        yield GrantStore(SharedTexts(database, "grants"))


def path_of(store: GrantStore) -> Path:
    return Path(store.texts.place(NAME))


def test_without_anybody_to_ask_it_is_refused_with_the_commands_that_allow_it(
    store: GrantStore,
) -> None:
    with pytest.raises(ToolDeniedError, match=r"file\.write may not run: it writes") as caught:
        admit(PermissionGate(store))
    assert "--grant once" in str(caught.value.hint)
    assert 'allow = ["file.write"]' in str(caught.value.hint)
    assert not path_of(store).exists()


def test_the_person_at_the_terminal_decides_and_for_how_long(kept: GrantStore) -> None:
    person = Person("no", "once", "once", "session", "always")
    gate = PermissionGate(kept, asker=person)
    assert admit(gate) == "denied: not allowed by the person"
    admit(gate)
    admit(gate)
    assert kept.all() == (), "once leaves nothing behind"
    admit(gate)
    assert len(person.asked) == 4
    assert "this session" in admit(gate), "not asked again in the session"
    admit(gate, session="another")
    assert "always" in admit(PermissionGate(kept), session="a third, in another process")
    assert len(person.asked) == 5
    assert person.asked[0] == ("file.write", {"path": "a"})


def test_deny_is_nobody_s_to_overrule(store: GrantStore) -> None:
    store.add(Grant(tool="file.write", session_id=None, by="ada"))
    person = Person("always")
    gate = PermissionGate(store, deny=("file.*",), asker=person)
    with pytest.raises(ToolDeniedError, match=r"tools\.deny"):
        admit(gate, granted="always")
    assert person.asked == []


def test_a_call_that_was_granted_when_the_turn_was_resumed_runs_once(store: GrantStore) -> None:
    assert "once" in admit(PermissionGate(store), granted="once")
    with pytest.raises(ToolDeniedError):
        admit(PermissionGate(store))


def test_grants_can_be_revoked(kept: GrantStore) -> None:
    assert kept.revoke() == 0
    kept.add(Grant(tool="a", session_id=None, by="ada"))
    kept.add(Grant(tool="a", session_id="s", by="ada"))
    kept.add(Grant(tool="a", session_id="s", by="bo"))
    kept.add(Grant(tool="b", session_id="s", by="ada"))
    assert [(g.tool, g.session_id, g.by) for g in kept.all()] == [
        ("a", None, "ada"),
        ("a", "s", "bo"),
        ("b", "s", "ada"),
    ]
    assert kept.revoke("a", session_id="s") == 1
    assert kept.revoke("a") == 1
    assert [grant.tool for grant in kept.all()] == ["b"]


def test_grants_are_private(store: GrantStore) -> None:
    store.add(Grant(tool="a", session_id=None, by="ada"))
    assert stat.S_IMODE(path_of(store).stat().st_mode) == 0o600
    assert stat.S_IMODE(path_of(store).parent.stat().st_mode) == 0o700


def test_no_grant_is_lost_among_several_writers(kept: GrantStore) -> None:
    def add(number: int) -> None:
        kept.add(Grant(tool=f"t{number}", session_id=None, by="ada"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(24)))
    assert {grant.tool for grant in kept.all()} == {f"t{n}" for n in range(24)}


@pytest.mark.parametrize("text", ["{", "[]", '{"grants": [{"tool": 3}]}'])
def test_a_damaged_file_grants_nothing(store: GrantStore, text: str) -> None:
    path_of(store).parent.mkdir()
    path_of(store).write_text(text)
    with pytest.raises(ConfigError, match="cannot be read"):
        admit(PermissionGate(store))
    assert path_of(store).read_text() == text


def test_a_file_that_cannot_be_read_grants_nothing(store: GrantStore) -> None:
    path_of(store).mkdir(parents=True)
    for refused in (store.all, lambda: store.add(Grant(tool="a", session_id=None, by="ada"))):
        with pytest.raises(ConfigError, match="what tools may do cannot be") as caught:
            refused()
        assert "without it nothing is granted" in (caught.value.hint or "")


def test_a_newer_version_s_fields_are_kept(store: GrantStore) -> None:
    store.add(Grant(tool="a", session_id=None, by="ada"))
    written = json.loads(path_of(store).read_text()) | {"later": 1}
    path_of(store).write_text(json.dumps(written))
    store.add(Grant(tool="b", session_id=None, by="ada"))
    assert json.loads(path_of(store).read_text())["later"] == 1


def web(description: str = "Fetch.", command: str = "serve") -> Tool:
    return Tool("web.get", description, Arguments, frozenset({NETWORK}), _run, server=command)


def test_a_grant_holds_for_the_tool_as_it_was_when_a_person_saw_it(store: GrantStore) -> None:
    person = Person("always", "no", "no")
    gate = PermissionGate(store, asker=person)

    def verdict(asked: Tool) -> str:
        return asyncio.run(gate.admit(asked, {})).verdict

    assert verdict(web()) == "allowed"
    assert verdict(web()) == "allowed"
    assert len(person.asked) == 1
    assert verdict(web("Fetch, and delete.")) == "denied"
    assert "as it was defined then" in person.why
    assert verdict(web(command="serve --as root")) == "denied"


def test_a_grant_of_the_network_holds_for_the_host_that_a_person_saw(store: GrantStore) -> None:
    person = Person("session", "no", "always")
    gate = PermissionGate(store, asker=person)

    def verdict(url: str) -> str:
        args = {"query": {"of": [url]}}
        return asyncio.run(gate.admit(web(), args, session_id="s")).verdict

    assert verdict("https://docs.example/a") == "allowed"
    assert verdict("https://docs.example/b?c=d") == "allowed"
    assert verdict("https://evil.example/a") == "denied"
    assert verdict("https://more.example/a") == "allowed"
    for told in (
        "https://docs.example'@evil.example/",
        "https://docs.example)@evil.example/",
        "see //evil.example/?k",
        "ftp://evil.example",
        "http://[::1]/a",
        "http://[bad",
    ):
        person.replies.append("no")
        assert verdict(told) == "denied", told
    assert verdict("https://docs.example/a") == "allowed"
    assert len(person.asked) == 9
    for args in (
        {"url": "docs.example/a"},
        {"host": "docs.example"},
        {"baseUrls": ["docs.example"]},
    ):
        assert asyncio.run(gate.admit(web(), args, session_id="s")).verdict == "allowed"
    for args in ({"url": "evil.example/a"}, {"to": {"endpoint": "evil.example:80"}}):
        person.replies.append("no")
        assert asyncio.run(gate.admit(web(), args, session_id="s")).verdict == "denied", args
    assert {grant.hosts for grant in store.all()} == {("docs.example",), ("more.example",)}


@pytest.mark.parametrize(
    ("attended", "withheld"),
    [(True, {"file.write"}), (False, {"file.write", "web.get", "human.ask"})],
)
def test_what_is_not_offered(attended: bool, withheld: set[str], store: GrantStore) -> None:
    """What the settings deny; and what somebody would have to allow, where nobody is asked."""
    store.add(
        Grant(tool="web.put", session_id=None, by="ada", definition=tool("web.put").definition)
    )
    gate = PermissionGate(store, deny=("file.*",), attended=attended)
    tools = [tool(), tool("web.get"), tool("web.put"), tool("doc.search", READS)]
    assert gate.withheld(tools, "s1") == withheld
