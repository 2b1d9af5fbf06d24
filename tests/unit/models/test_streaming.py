"""The text of an answer as it is written, seen through a real stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.answers import COMPLETE, DRAFT, QUESTION, every_phase_by_model, journal_lines, script
from tests.servers.model_server import ModelServer, cut_stream, stream
from tests.unit.models.calls import call
from unified_flow.errors import CutReplyError
from unified_flow.flow import UnifiedFlow
from unified_flow.models import ModelReply, Stream
from unified_flow.models.openai.completion import StreamPreview
from unified_flow.models.openai.model import OpenAIModel
from unified_flow.turns.events import Observed, TextArrived
from unified_flow.turns.results import Draft
from unified_flow.turns.turn import Turn


def asked(server: ModelServer, seen: list[str], key: str | None = None) -> ModelReply:
    wanted = replace(call(Draft), stream=Stream("response", seen.append))

    async def ask() -> ModelReply:
        model = OpenAIModel("served", server.url, "m", api_key=key)
        try:
            return await model.complete(wanted)
        finally:
            await model.aclose()

    return asyncio.run(ask())


def test_the_text_grows_and_the_reply_is_what_it_always_was(model_server: ModelServer) -> None:
    text = DRAFT.model_dump_json()
    model_server.script = [stream(text), stream(text)]
    seen: list[str] = []
    assert asked(model_server, seen).text == text
    assert seen, "something was shown"
    assert seen[-1] == DRAFT.response
    assert all(later.startswith(earlier) for earlier, later in pairwise(seen))
    body = model_server.requests[0].body
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}


def test_a_cut_stream_is_a_failure_whatever_was_shown(model_server: ModelServer) -> None:
    model_server.script = [cut_stream('{"response": "Half of an ans')]
    seen: list[str] = []
    with pytest.raises(CutReplyError):
        asked(model_server, seen)
    assert seen[-1] == "Half of an ans"


def test_a_server_that_does_not_stream_answers_all_the_same(model_server: ModelServer) -> None:
    model_server.script = [DRAFT]
    seen: list[str] = []
    assert json.loads(asked(model_server, seen).text)["response"] == DRAFT.response
    assert seen == []


def test_nobody_who_watches_sees_the_key(model_server: ModelServer) -> None:
    key = "sk-abcdefghijklmnop"
    model_server.script = [stream(json.dumps({"response": f"The key is {key}, is it not?"}))]
    seen: list[str] = []
    asked(model_server, seen, key)
    assert seen[-1] == "The key is [redacted], is it not?"
    assert not any("sk-abc" in text for text in seen)


def chunks(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


@given(st.text(max_size=60), st.lists(st.integers(0, 5000), max_size=12))
def test_it_does_not_matter_where_the_bytes_are_cut(text: str, cuts: list[int]) -> None:
    reply = json.dumps({"response": text, "citations": []}, ensure_ascii=False)
    events = b"".join(
        b"data: " + json.dumps({"choices": [{"delta": {"content": part}}]}).encode() + b"\n\n"
        for part in reply
    )
    seen: list[str] = []
    tap = StreamPreview(seen.append, "response", None)
    for chunk in chunks(events, cuts):
        tap.feed(chunk)
    assert (seen[-1] if seen else "") == text


@every_phase_by_model
def test_onlookers_of_a_turn_see_the_text_and_the_journal_does_not(
    home: Path, model_server: ModelServer
) -> None:
    model_server.script = script(planner=COMPLETE, synthesis=stream(DRAFT.model_dump_json()))
    seen: list[Observed] = []

    async def ask() -> Turn:
        settings = {"model": "m", "base_url": model_server.url}
        async with UnifiedFlow.from_config(home, **settings) as flow:
            return await flow.process("s", QUESTION, observer=seen.append)

    assert asyncio.run(ask()).response == DRAFT.response
    texts = [event.text for event in seen if isinstance(event, TextArrived)]
    assert texts
    assert texts[-1] == DRAFT.response
    assert "text_arrived" not in {line["event"] for line in journal_lines(home)}


@every_phase_by_model
def test_a_model_streams_for_nobody_once_the_onlooker_has_failed(
    home: Path, model_server: ModelServer
) -> None:
    model_server.script = script(planner=COMPLETE, synthesis=stream(DRAFT.model_dump_json()))

    def leave(event: Observed) -> None:
        raise BrokenPipeError

    async def ask() -> Turn:
        settings = {"model": "m", "base_url": model_server.url}
        async with UnifiedFlow.from_config(home, **settings) as flow:
            return await flow.process("s", QUESTION, observer=leave)

    assert asyncio.run(ask()).response == DRAFT.response
    assert not any(each.body.get("stream") for each in model_server.requests if each.body)
