"""OpenAIModel against a real server on loopback: every way in which it can go wrong."""

from __future__ import annotations

import asyncio
import logging
import traceback

import httpx
import pytest

from tests.servers import model_server as serve
from tests.servers.model_server import ModelServer
from tests.unit.models.calls import PROCEED, call
from unified_flow.errors import (
    ConfigError,
    CutReplyError,
    EmptyReplyError,
    ModelError,
    NotJSONError,
    ReplyTooLargeError,
    SchemaMismatchError,
)
from unified_flow.models import ModelReply
from unified_flow.models.openai.model import OpenAIModel
from unified_flow.models.reply import parse_reply
from unified_flow.servers import client as server_client
from unified_flow.servers.client import MAX_REPLY_BYTES, transport_error
from unified_flow.turns.results import Plan, Reflection

KEY = "sk-test-0123456789abcdef"


def ask(url: str, *, key: str | None = None, timeout_s: float = 5.0) -> ModelReply:
    async def run() -> ModelReply:
        model = OpenAIModel("served", url, "test-model", api_key=key, timeout_s=timeout_s)
        try:
            return await model.complete(call())
        finally:
            await model.aclose()

    return asyncio.run(run())


def test_an_answer_with_its_token_counts(model_server: ModelServer) -> None:
    model_server.script = {"reflection": PROCEED}
    reply = ask(model_server.url)
    assert parse_reply(reply.text, Reflection) == PROCEED
    assert (reply.prompt_tokens, reply.completion_tokens) == (11, 7)


def test_the_request_says_all_that_the_call_says(model_server: ModelServer) -> None:
    model_server.script = [PROCEED]
    ask(model_server.url, key=KEY)
    [request] = model_server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "test-model"
    assert (request.body["temperature"], request.body["max_tokens"]) == (0.3, 512)
    assert request.body["stream"] is False
    wanted = request.body["response_format"]["json_schema"]
    assert (wanted["name"], wanted["strict"]) == ("reflection", True)
    assert wanted["schema"]["required"] == list(Reflection.model_fields)
    assert "What is the queue for?" in request.text


def test_a_schema_that_strictness_cannot_express_is_sent_as_it_is(
    model_server: ModelServer,
) -> None:
    plan = Plan(decision="COMPLETE", route="synthesis")
    model_server.script = {"planner": plan}

    async def run() -> ModelReply:
        model = OpenAIModel("served", model_server.url, "test-model")
        try:
            return await model.complete(call(Plan, phase="planner"))
        finally:
            await model.aclose()

    assert parse_reply(asyncio.run(run()).text, Plan) == plan
    wanted = model_server.requests[0].body["response_format"]["json_schema"]
    assert wanted["strict"] is False
    assert wanted["schema"] == Plan.model_json_schema()


@pytest.mark.parametrize("base", ["", "/", "?api-version=1"])
def test_the_base_url_may_end_in_a_slash_or_a_query(model_server: ModelServer, base: str) -> None:
    model_server.script = [PROCEED]
    ask(model_server.url + base)
    assert model_server.requests[0].path.startswith("/v1/chat/completions")


@pytest.mark.parametrize(
    ("behaviour", "error", "said"),
    [
        (serve.empty_choices(), EmptyReplyError, "has no choices"),
        (serve.null_content(), EmptyReplyError, "reply is empty"),
        (serve.null_content(refusal="I will not."), EmptyReplyError, "refused.*I will not"),
        (serve.null_content(tool_calls=[{"id": "1"}]), EmptyReplyError, "a tool call of its own"),
        (serve.null_content(reasoning_content="hm"), EmptyReplyError, "reasoned and wrote no"),
        (serve.answer("  "), EmptyReplyError, "reply is empty"),
        (serve.raw(b'{"error": {"message": "no such model"}}'), EmptyReplyError, "no such model"),
        (serve.raw(b"[]"), EmptyReplyError, "no completion"),
        (serve.answer('{"a"', "LENGTH"), CutReplyError, "full with 11 tokens.* 7 of the 512"),
        (
            serve.answer('{"a": 1', "length", tokens=512),
            CutReplyError,
            "finish_reason length.*token limit of 512",
        ),
        (serve.answer("", "length", reasoning="hm"), CutReplyError, "reasoned and.*length"),
        (serve.answer("{}", "content_filter"), CutReplyError, "content filter stopped it"),
        (serve.cut_stream(), CutReplyError, "stream ended without its end"),
        (serve.cut_body(announced=False), CutReplyError, "ends in the middle of its JSON"),
        (serve.raw(b"<html>Welcome</html>"), NotJSONError, "not JSON.*<html>"),
        (serve.raw(b""), NotJSONError, "not JSON"),
        (serve.raw(b"\xff\xfe\x00"), NotJSONError, "not JSON"),
        (serve.endless(), ReplyTooLargeError, f"more than {MAX_REPLY_BYTES:,} bytes"),
        (serve.endless("text/event-stream"), ReplyTooLargeError, "more than"),
    ],
)
def test_a_useless_reply_is_a_model_error_of_its_own(
    model_server: ModelServer,
    behaviour: serve.Behaviour,
    error: type[ModelError],
    said: str,
) -> None:
    model_server.script = [behaviour]
    with pytest.raises(error, match=said) as caught:
        ask(model_server.url)
    assert type(caught.value) is error
    assert len(model_server.requests) == 1


def test_prose_and_json_of_another_shape_are_left_to_the_reader(model_server: ModelServer) -> None:
    model_server.script = ["I am not sure.", {"verdict": "fine"}]
    with pytest.raises(NotJSONError):
        parse_reply(ask(model_server.url).text, Reflection)
    with pytest.raises(SchemaMismatchError, match="decision: Field required"):
        parse_reply(ask(model_server.url).text, Reflection)


def test_a_server_that_only_streams_is_understood(model_server: ModelServer) -> None:
    text = PROCEED.model_dump_json()
    model_server.script = [serve.stream(text)]
    assert ask(model_server.url).text == text


@pytest.mark.parametrize(
    ("code", "hint"), [(400, "rejected"), (401, "key"), (403, "key"), (404, "/v1"), (429, "wait"),
                       (500, "its own log"), (503, "its own log")],
)  # fmt: skip
def test_a_refusal_says_the_status_and_the_servers_own_words(
    model_server: ModelServer, code: int, hint: str
) -> None:
    model_server.script = [serve.status(code, "the words of the server")]
    with pytest.raises(httpx.HTTPStatusError, match=f"^{code} .*the words of the server") as caught:
        ask(model_server.url)
    assert caught.value.response.status_code == code
    assert model_server.url in str(caught.value)
    assert hint in vars(caught.value)["hint"]
    assert len(model_server.requests) == 1


def test_retry_after_reaches_the_policy(model_server: ModelServer) -> None:
    model_server.script = [serve.rate_limited(7)]
    with pytest.raises(httpx.HTTPStatusError) as caught:
        ask(model_server.url)
    assert caught.value.response.headers["Retry-After"] == "7"


def test_a_long_or_ugly_refusal_is_bounded_and_printable(model_server: ModelServer) -> None:
    page = b"<h1>\x1b[31mbad\r\ngateway</h1>" + b"x" * 1_000_000
    model_server.script = [serve.raw(page, code=502)]
    with pytest.raises(httpx.HTTPStatusError) as caught:
        ask(model_server.url)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()
    assert len(caught.value.response.content) <= 300


def test_an_endless_refusal_ends(model_server: ModelServer) -> None:
    model_server.script = [serve.raw(b'{"error": ' + b"[" * 500_000, code=500)]
    with pytest.raises(httpx.HTTPStatusError, match="500"):
        ask(model_server.url)


@pytest.mark.parametrize("behaviour", [serve.cut_body(code=503), serve.trickle(code=503)])
def test_a_refusal_counts_though_its_reason_does_not_arrive(
    model_server: ModelServer, behaviour: serve.Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_client, "_REASON_S", 0.1)
    model_server.script = [behaviour]
    with pytest.raises(httpx.HTTPStatusError, match=r"^503 "):
        ask(model_server.url)


def test_a_redirect_is_not_followed(model_server: ModelServer) -> None:
    with ModelServer({"reflection": PROCEED}) as elsewhere:
        model_server.script = [serve.redirect(elsewhere.url + "/chat/completions")]
        with pytest.raises(httpx.HTTPStatusError, match=r"307.*redirects are not followed"):
            ask(model_server.url, key=KEY)
        assert elsewhere.requests == []


def test_connection_refused_names_the_model_and_its_address() -> None:
    url = serve.refused_url()
    with pytest.raises(httpx.ConnectError) as caught:
        ask(url)
    assert str(caught.value) == f"Connection refused (asked test-model at {url})"
    assert "Start the model server" in vars(caught.value)["hint"]


def test_a_connection_cut_in_the_middle(model_server: ModelServer) -> None:
    model_server.script = [serve.cut_body()]
    with pytest.raises(httpx.RemoteProtocolError, match="asked test-model at http"):
        ask(model_server.url)


@pytest.mark.parametrize(
    "kind", [httpx.ConnectError, httpx.ReadError, httpx.ProxyError, httpx.ConnectTimeout]
)
def test_every_transport_error_keeps_its_type_and_gets_a_hint(
    kind: type[httpx.TransportError],
) -> None:
    request = httpx.Request("POST", "http://127.0.0.1/v1")
    error = transport_error(kind(""), "m", request)
    assert type(error) is kind
    assert str(error) == f"{kind.__name__} (asked m)"
    assert vars(error)["hint"]


@pytest.mark.parametrize("behaviour", [serve.hang(), serve.trickle()])
def test_one_deadline_for_the_whole_call(
    model_server: ModelServer, behaviour: serve.Behaviour
) -> None:
    model_server.script = [behaviour]
    with pytest.raises(httpx.TimeoutException, match=r"in 0\.2 s \(asked test-model") as caught:
        ask(model_server.url, timeout_s=0.2)
    assert caught.value.request.url.path == "/v1/chat/completions"


def test_a_cancelled_call_is_cancelled_and_not_a_time_out(model_server: ModelServer) -> None:
    model_server.script = [serve.hang()]

    async def run() -> None:
        model = OpenAIModel("served", model_server.url, "test-model")
        task = asyncio.create_task(model.complete(call()))
        while not model_server.requests:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.aclose()

    asyncio.run(run())


@pytest.mark.parametrize(
    "behaviour",
    [
        serve.cut_body(),
        serve.hang(),
        serve.raw(f"key {KEY} or {KEY[:12]}*** or …{KEY[-8:]} is wrong".encode(), code=401),
        serve.status(500, f"Authorization: Bearer {KEY} was refused"),
        serve.endless(),
    ],
)
def test_no_exception_ever_holds_the_key(
    model_server: ModelServer,
    behaviour: serve.Behaviour,
    caplog: pytest.LogCaptureFixture,
) -> None:
    model_server.script = [behaviour]
    caplog.set_level(logging.DEBUG)
    with pytest.raises((httpx.HTTPError, ModelError)) as caught:
        ask(model_server.url, key=KEY, timeout_s=0.3)
    exc = caught.value
    shown = "".join(traceback.format_exception(exc)) + repr(exc) + caplog.text
    if isinstance(exc, httpx.HTTPError):
        shown += str(exc.request.headers.raw)
    if isinstance(exc, httpx.HTTPStatusError):
        shown += exc.response.text
    assert KEY not in shown
    assert KEY[:12] not in shown
    assert KEY[-8:] not in shown


def test_a_key_that_is_none_hides_no_words(model_server: ModelServer) -> None:
    """As local servers get one: `x`, `none`."""
    model_server.script = [serve.status(500, "the context exceeds what fits")]
    with pytest.raises(httpx.HTTPStatusError, match="the context exceeds what fits"):
        ask(model_server.url, key="x")


def test_a_wrong_key_gets_401_and_is_not_echoed() -> None:
    with ModelServer({"reflection": PROCEED}, api_key="right") as server:
        with pytest.raises(httpx.HTTPStatusError, match=r"401.*\[redacted\]"):
            ask(server.url, key="wrong-but-secret-key")
        assert parse_reply(ask(server.url, key="right").text, Reflection) == PROCEED


def test_the_repr_shows_neither_key_nor_query() -> None:
    model = OpenAIModel("served", "http://127.0.0.1:9/v1?key=hidden", "m", api_key=KEY)
    assert repr(model) == "OpenAIModel('served', 'http://127.0.0.1:9/v1', 'm')"
    assert KEY not in str(vars(model))


@pytest.mark.parametrize(
    ("url", "said"),
    [("", "not an http address"), ("ftp://host/v1", "not an http address"),
     ("localhost:8080", "not an http address"), ("http://", "not an http address"),
     ("http://me:pw@host/v1", "user name or password"),
     ("http://host:99999/v1", "not an http address"),
     ("http://host:port/v1", "is no URL")],
)  # fmt: skip
def test_a_bad_base_url_is_a_config_error_before_any_call(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        OpenAIModel("served", url, "m")
    assert "pw" not in str(caught.value)
    assert caught.value.hint


async def _twice(model: OpenAIModel) -> None:
    for _ in range(2):
        await model.complete(call())


def test_a_closed_model_leaves_the_others_open_and_may_be_used_again(
    model_server: ModelServer,
) -> None:
    model_server.script = {"reflection": PROCEED}

    async def run() -> None:
        first = OpenAIModel("a", model_server.url, "a")
        second = OpenAIModel("b", model_server.url, "b")
        await _twice(first)
        await _twice(second)
        await first.aclose()
        await _twice(second)
        await second.aclose()
        await _twice(first)  # a closed model may be used again
        await first.aclose()

    asyncio.run(run())
    assert len(model_server.requests) == 8


def test_a_model_outlives_an_event_loop(model_server: ModelServer) -> None:
    model_server.script = {"reflection": PROCEED}
    model = OpenAIModel("served", model_server.url, "test-model")

    async def run() -> None:
        await model.complete(call())
        await model.aclose()

    asyncio.run(run())
    asyncio.run(run())
