"""Servers that speak OpenAI's protocol in their own way, by what they document and are known to
say: each is asked twice over loopback, and the second time in the words that it understood."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import pytest

from tests.servers.model_server import Behaviour, Connection, ModelServer, raw
from tests.unit.models.calls import PROCEED, call
from unified_flow.errors import CutReplyError
from unified_flow.models import ModelReply, Stream
from unified_flow.models.openai.model import Dialect, OpenAIModel, adapted
from unified_flow.models.reply import parse_reply
from unified_flow.turns.results import Reflection

TEXT = PROCEED.model_dump_json()
Body = dict[str, Any]


def completion(message: Body, usage: Body | None = None, reason: str | None = "stop") -> Body:
    said = {"role": "assistant", **message}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": said, "finish_reason": reason}],
        **({} if usage is None else {"usage": usage}),
    }


def events(*chunks: Body | str) -> bytes:
    return b"".join(
        (c if isinstance(c, str) else f"data: {json.dumps(c)}").encode() + b"\n\n" for c in chunks
    )


def delta(content: Any, reason: str | None = None) -> Body:
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": reason}]}


def openai_error(message: str, param: str | None = None) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param}}


def unless(well: Callable[[Body], bool], code: int, refusal: Body, answer: Behaviour) -> Behaviour:
    """Refuses what it does not understand, as it would say that."""
    return lambda c: answer(c) if well(c.request.body) else c.json(code, refusal)


def says(body: Body) -> Behaviour:
    return lambda c: c.json(200, body)


def streams(*chunks: Body | str, content_type: str = "text/event-stream") -> Behaviour:
    return raw(events(*chunks), content_type)


def json_mode_at_most(body: Body) -> bool:
    return body.get("response_format", {}).get("type") != "json_schema"


PLAIN = says(completion({"content": TEXT}))
FENCED = says(completion({"content": f"Here is the JSON:\n```json\n{TEXT}\n```\nI hope it helps."}))
STREAM = streams(delta(TEXT[:9]), delta(TEXT[9:]), delta(None, "stop"), "data: [DONE]")
NO_TEMPERATURE = openai_error(
    "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1)"
    " value is supported.",
    "temperature",
)


PLAINLY = Dialect()


@dataclass(frozen=True)
class Server:
    """`learnt`: what it is asked like from then on; `usage`: the tokens that it tells; `shown`:
    whether onlookers of a streamed answer see it grow."""

    name: str
    does: Behaviour
    learnt: Dialect = PLAINLY
    usage: tuple[int | None, int | None] = (None, None)
    refusals: int = 0
    streamed: bool = False
    shown: bool = True


SERVERS = [
    Server(
        "Ollama, a reasoning model",
        says(completion({"content": TEXT, "reasoning": "The user {asks}."},
                        {"prompt_tokens": 80, "completion_tokens": 20, "total_tokens": 100})),
        usage=(80, 20),
    ),
    Server(
        "vLLM without a reasoning parser",
        says(completion({"content": f"<think>Is it {{clear}}?</think>\n\n{TEXT}",
                         "tool_calls": []}) | {"usage": {"prompt_tokens": 80,
                                                         "completion_tokens": None}}),
        usage=(80, None),
    ),
    Server(
        "vLLM with a chat template that opens the tag itself",
        says(completion({"content": f"It is clear.\n</think>\n{TEXT}"})),
    ),
    Server(
        "DeepSeek, JSON mode at most",
        unless(json_mode_at_most, 400,
               openai_error("This response_format type is unavailable now"),
               says(completion({"content": TEXT, "reasoning_content": "Hm."},
                               {"prompt_tokens": 9, "completion_tokens": 8,
                                "prompt_cache_hit_tokens": 0}))),
        Dialect(response_format="json_object"), (9, 8), refusals=1,
    ),
    Server(
        "Groq, an older model",
        unless(json_mode_at_most, 400,
               openai_error("'response_format.type' : value is not one of the allowed values"
                            " ['text','json_object']"), PLAIN),
        Dialect(response_format="json_object"), refusals=1,
    ),
    Server(
        "a FastAPI server that knows no response_format",
        unless(lambda body: "response_format" not in body, 422,
               {"detail": [{"type": "extra_forbidden", "loc": ["body", "response_format"],
                            "msg": "Extra inputs are not permitted"}]}, FENCED),
        Dialect(response_format="none"), refusals=2,
    ),
    Server("a server that ignores response_format", FENCED),
    Server(
        "OpenAI, a reasoning model",
        unless(lambda body: "max_completion_tokens" in body, 400,
               openai_error("Unsupported parameter: 'max_tokens' is not supported with this model."
                            " Use 'max_completion_tokens' instead.", "max_tokens"),
               unless(lambda body: "temperature" not in body, 400, NO_TEMPERATURE,
                      says(completion({"content": TEXT, "refusal": None},
                                      {"prompt_tokens": 9, "completion_tokens": 8,
                                       "completion_tokens_details": {"reasoning_tokens": 6}})))),
        Dialect(limit="max_completion_tokens", temperature=False), (9, 8), refusals=2,
    ),
    Server(
        "Mistral, a reasoning model: the content in parts",
        says(completion({"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "{no}"}]},
            {"type": "text", "text": TEXT}]})),
    ),
    Server(
        "a chat template without a system role",
        unless(lambda body: body["messages"][0]["role"] == "user", 500,
               {"error": {"code": 500, "message": "System role not supported"}}, PLAIN),
        Dialect(system_role=False), refusals=1,
    ),
    Server(
        "DashScope, a model that only streams",
        unless(lambda body: bool(body["stream"]), 400,
               openai_error("This model only support stream mode, please enable the stream"
                            " parameter to access the model."), STREAM),
        Dialect(stream="always"), refusals=1,
    ),
    Server(
        "OpenAI, an organisation that is not verified",
        unless(lambda body: not body.get("stream"), 400,
               openai_error("Your organization must be verified to stream this model.", "stream"),
               PLAIN),
        Dialect(stream="never"), refusals=1, streamed=True, shown=False,
    ),
    Server(
        "a wrapper of a model that cannot stream",
        unless(lambda body: not body.get("stream"), 501,
               {"detail": "Streaming is not supported."}, PLAIN),
        Dialect(stream="never"), refusals=1, streamed=True, shown=False,
    ),
    Server(
        "a FastAPI server that knows no stream",
        unless(lambda body: "stream" not in body, 422,
               {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream"],
                            "msg": "Extra inputs are not permitted"}]}, PLAIN),
        Dialect(stream="never"), refusals=1,
    ),
    Server("a gateway that always streams, as plain text",
           streams(delta(TEXT, "stop"), "data: [DONE]", content_type="text/plain")),
    Server(
        "a server that does not know stream_options",
        unless(lambda body: "stream_options" not in body, 422,
               {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs"}]}, STREAM),
        Dialect(usage_of_stream=False), refusals=1, streamed=True,
    ),
    Server(
        "OpenRouter: comments in the stream, the usage in a last chunk without choices",
        streams(": OPENROUTER PROCESSING", delta(TEXT), delta("", "stop"),
                {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 8},
                 "error": None},
                "data: [DONE]"),
        usage=(9, 8), streamed=True,
    ),
    Server(
        "llama.cpp: a stream of reasoning, then of text",
        streams({"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]},
                {"choices": [{"index": 0, "delta": {"reasoning_content": "{hm}"}}]},
                delta(TEXT), {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                "data: [DONE]"),
        streamed=True,
    ),
    Server("a finish_reason of its own, and the usage under other names",
           says(completion({"content": TEXT}, {"input_tokens": 9, "output_tokens": 8}, "EOS")),
           usage=(9, 8)),
    Server("usage that is no number, no finish_reason",
           says(completion({"content": TEXT}, {"prompt_tokens": "9", "completion_tokens": -1},
                           None))),
]  # fmt: skip


def twice(url: str, streamed: bool) -> tuple[list[ModelReply], Dialect, list[str]]:
    seen: list[str] = []
    wanted = replace(call(), stream=Stream("decision", seen.append) if streamed else None)

    async def run() -> tuple[list[ModelReply], Dialect, list[str]]:
        model = OpenAIModel("served", url, "m")
        try:
            return [await model.complete(wanted) for _ in range(2)], model._dialect, seen
        finally:
            await model.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_each_is_understood_and_asked_in_its_own_words(
    model_server: ModelServer, server: Server
) -> None:
    model_server.script = [server.does] * 9
    replies, learnt, seen = twice(model_server.url, server.streamed)
    for reply in replies:
        assert parse_reply(reply.text, Reflection) == PROCEED
        assert (reply.prompt_tokens, reply.completion_tokens) == server.usage
    assert learnt == server.learnt
    assert len(model_server.requests) == 2 + server.refusals
    assert seen[-1:] == (["PROCEED"] if server.streamed and server.shown else [])


@pytest.mark.parametrize("server", [s for s in SERVERS if s.refusals], ids=lambda s: s.name)
def test_calls_that_begin_at_once_learn_the_same_words(
    model_server: ModelServer, server: Server
) -> None:
    at_once = 4
    all_here = Barrier(at_once)

    def together(c: Connection) -> None:
        all_here.wait(timeout=10)
        server.does(c)

    model_server.script = [*[together] * at_once, *[server.does] * 20]
    wanted = replace(
        call(), stream=Stream("decision", lambda text: None) if server.streamed else None
    )

    async def run() -> tuple[list[ModelReply], Dialect]:
        model = OpenAIModel("served", model_server.url, "m")
        try:
            return await asyncio.gather(*[model.complete(wanted) for _ in range(at_once)]), (
                model._dialect
            )
        finally:
            await model.aclose()

    replies, learnt = asyncio.run(run())
    assert [parse_reply(reply.text, Reflection) for reply in replies] == [PROCEED] * at_once
    assert learnt == server.learnt


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "This model's maximum context length is 4096 tokens. 'max_tokens' is too large, use"
              " 'max_completion_tokens'."),
        (400, "the words of the server"),
        (401, "response_format needs a key"),
        (400, "non-streaming is not what this model can do"),
        (500, "the grammar engine ran out of system memory at a high temperature"),
        (429, "max_tokens per minute exceeded: see max_completion_tokens"),
    ],
)  # fmt: skip
def test_other_words_are_tried_only_where_they_can_help(status: int, said: str) -> None:
    assert adapted(Dialect(), status, said) is None


def test_a_server_that_refuses_every_form_is_a_failure_soon(model_server: ModelServer) -> None:
    def refuse(c: Connection) -> None:
        c.json(400, openai_error("response_format, temperature, stream_options: bad request"))

    model_server.script = [refuse] * 20
    with pytest.raises(httpx.HTTPStatusError, match=r"400 .*bad request"):
        twice(model_server.url, streamed=True)
    assert len(model_server.requests) < 8


BROKEN_OFF = {
    "vLLM": {"object": "error", "message": "engine dead"},
    "LiteLLM": {"error": {"message": "engine dead", "code": "500"}},
    "a gateway's named event": 'event: error\ndata: {"message": "engine dead"}',
    "a named event of plain words": "event: error\ndata: the engine is engine dead",
    "OpenRouter": {"error": {"code": 502, "message": "engine dead"}, **delta("", "error")},
    "an error within the choice": {
        "choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "engine dead"}}]
    },
}


@pytest.mark.parametrize("event", BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_an_error_in_the_middle_of_a_stream_is_told_in_the_servers_words(
    model_server: ModelServer, event: Body | str
) -> None:
    model_server.script = [streams(delta(TEXT[:9]), event, delta(TEXT[9:], "stop"), "data: [DONE]")]
    with pytest.raises(CutReplyError, match=r"broke off with an error: .*engine dead"):
        twice(model_server.url, streamed=True)


def test_an_error_beside_the_text_is_told_in_the_servers_words(model_server: ModelServer) -> None:
    failed = completion({"content": TEXT[:9]}, reason="error")
    failed["choices"][0]["error"] = {"code": 502, "message": "engine dead"}
    model_server.script = [says(failed)]
    with pytest.raises(CutReplyError, match="engine dead"):
        twice(model_server.url, streamed=False)


def test_a_prompt_that_a_server_cut_in_silence_is_told(
    model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    cut = completion({"content": TEXT}, {"prompt_tokens": 4096, "completion_tokens": 5})
    model_server.script = [says(cut)] * 2

    async def ask(query: str) -> None:
        model = OpenAIModel("served", model_server.url, "m")
        await model.complete(call(query=query))
        await model.aclose()

    with caplog.at_level(logging.WARNING):
        asyncio.run(ask("short"))
        assert caplog.text == ""
        asyncio.run(ask("a long prompt " * 3000))
    assert "read 4096 tokens of a prompt of about 10" in caplog.text
    assert "OLLAMA_CONTEXT_LENGTH" in caplog.text


def test_the_page_about_servers_lists_them_all() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/model-servers.md").read_text()
    listed = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", page, re.MULTILINE)
    assert [name for name in listed if name in {server.name for server in SERVERS}] == [
        server.name for server in SERVERS
    ]
