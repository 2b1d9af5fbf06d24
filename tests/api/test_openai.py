"""The official `openai` client against the flow, as if it were a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.answers import every_phase_by_model, script
from tests.api.service import CLIENT, Service, model_flags, serving
from tests.servers.model_server import ModelServer, rate_limited, status

if TYPE_CHECKING:
    import openai

QUESTION = {"role": "user", "content": "What is a topic?"}


@pytest.fixture(scope="module", autouse=True)
def _client_is_loaded() -> None:
    """It takes half a second, which a worker without these tests does not need."""
    global openai
    import openai


def _client(service: Service, key: str = "unused") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{service.url}/v1", api_key=key, max_retries=0)


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[openai.OpenAI]:
    with _client(service) as made:
        yield made


def test_the_flow_is_listed_as_a_model(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["unified-flow"]
    assert client.models.retrieve("unified-flow").owned_by == "unified-flow"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4")


def test_a_completion(client: openai.OpenAI) -> None:
    done = client.chat.completions.create(
        model="unified-flow",
        messages=[{"role": "system", "content": "Be brief."}, QUESTION],
        temperature=0.2,
        user="ada",
    )
    assert "named bus" in (done.choices[0].message.content or "")
    assert done.choices[0].finish_reason == "stop"
    assert done.usage is not None
    ours = done.model_extra["unified_flow"]
    assert ours["sources"][0]["chapter_id"].endswith("docs/robots.md")
    assert ours["request_id"] == done._request_id


def test_content_in_parts(client: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "What is"}, {"type": "text", "text": "a service?"}]
    done = client.chat.completions.create(
        model="unified-flow", messages=[{"role": "user", "content": parts}]
    )
    assert "remote procedure call" in (done.choices[0].message.content or "")


def test_a_stream_is_the_same_text_in_pieces(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="unified-flow", messages=[QUESTION])
    chunks = list(
        client.chat.completions.create(
            model="unified-flow",
            messages=[QUESTION],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert len(chunks) > 4
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None


def test_a_conversation_goes_on_where_the_client_names_it(client: openai.OpenAI) -> None:
    for content in ("What is a topic?", "And what is it for?"):
        done = client.chat.completions.create(
            model="unified-flow",
            messages=[{"role": "user", "content": content}],
            metadata={"session_id": "openai-1"},
        )
    assert "sensor data" in (done.choices[0].message.content or "")
    assert done.model_extra["unified_flow"]["metadata"]["saved"]


def test_what_was_said_before_is_what_a_front_end_sends(client: openai.OpenAI) -> None:
    done = client.chat.completions.create(
        model="unified-flow",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is a topic?"},
            {"role": "assistant", "content": "A topic is a named bus."},
            {"role": "user", "content": "And what is it for?"},
        ],
    )
    assert "sensor data" in (done.choices[0].message.content or "")
    assert not done.model_extra["unified_flow"]["metadata"]["saved"]


def test_a_bad_request_has_our_code_in_its_shape(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(
            model="unified-flow", messages=[{"role": "user", "content": " "}]
        )
    assert raised.value.code == "VALIDATION_ERROR"
    assert raised.value.type == "invalid_request_error"
    assert raised.value.param == "query"
    assert raised.value.body["request_id"] == raised.value.request_id
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="gpt-4", messages=[QUESTION])
    assert unknown.value.param == "model"


@pytest.mark.parametrize(
    "more", [{"tool_choice": "required"}, {"response_format": {"type": "json_object"}}], ids=str
)
def test_what_the_flow_cannot_honour_is_refused(
    more: dict[str, Any], client: openai.OpenAI
) -> None:
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="unified-flow", messages=[QUESTION], **more)
    kept: dict[str, Any] = {"tool_choice": "auto", "response_format": {"type": "text"}}
    client.chat.completions.create(model="unified-flow", messages=[QUESTION], **kept)


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {}}}


@pytest.mark.parametrize("content", [[IMAGE], [{"type": "text", "text": "What is this?"}, IMAGE]])
def test_a_question_with_an_image_is_refused_in_one_sentence(
    content: list[Any], client: openai.OpenAI
) -> None:
    with pytest.raises(openai.BadRequestError, match="Only text can be asked") as raised:
        client.chat.completions.create(
            model="unified-flow", messages=[{"role": "user", "content": content}]
        )
    assert raised.value.param == "messages"


def test_an_earlier_image_is_passed_over(client: openai.OpenAI) -> None:
    history: list[Any] = [
        {"role": "user", "content": [IMAGE]},
        {"role": "assistant", "content": "A cat."},
    ]
    done = client.chat.completions.create(model="unified-flow", messages=[*history, QUESTION])
    assert done.choices[0].message.content


def test_tools_of_a_request_are_refused_in_one_sentence(client: openai.OpenAI) -> None:
    tools: list[Any] = [TOOL]
    with pytest.raises(openai.BadRequestError, match="cannot bring tools") as raised:
        client.chat.completions.create(model="unified-flow", messages=[QUESTION], tools=tools)
    assert raised.value.param == "tools"
    client.chat.completions.create(model="unified-flow", messages=[QUESTION], tools=[])


def test_what_is_not_served_of_openai_names_what_is(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="chat completions and models work"):
        client.responses.create(model="unified-flow", input="What is a topic?")


def test_the_usage_is_what_the_models_have_reported(folder: Path, docs: Path) -> None:
    with (
        ModelServer(script()) as model,
        serving(folder, *model_flags(model.url), docs=docs) as service,
        _client(service) as client,
    ):
        done = client.chat.completions.create(model="unified-flow", messages=[QUESTION])
        calls = len(model.phases)
    assert done.usage is not None
    assert calls
    assert done.usage.prompt_tokens == calls * 11, "as the server says of each"
    assert done.usage.total_tokens == calls * (11 + 7)


@every_phase_by_model
@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_keeps_its_status_also_in_a_stream(
    stream: bool, folder: Path, docs: Path
) -> None:
    with (
        ModelServer(script(synthesis=status(500))) as model,
        serving(folder, *model_flags(model.url), docs=docs) as service,
        _client(service) as client,
    ):
        with pytest.raises(openai.InternalServerError) as raised:
            client.chat.completions.create(model="unified-flow", messages=[QUESTION], stream=stream)
        assert (raised.value.status_code, raised.value.code) == (502, "LLM_ERROR")
        assert raised.value.type == "server_error"
        model.script = script(query_analyzer=rate_limited(7))
        with pytest.raises(openai.RateLimitError) as limited:
            client.chat.completions.create(model="unified-flow", messages=[QUESTION], stream=stream)
        assert limited.value.code == "RATE_LIMITED"
        assert int(limited.value.response.headers["Retry-After"]) >= 1
        assert "x-should-retry" not in limited.value.response.headers
        model.script = script(query_analyzer=status(401))
        with pytest.raises(openai.InternalServerError) as refused:  # no retry mends the key
            client.chat.completions.create(model="unified-flow", messages=[QUESTION], stream=stream)
        assert refused.value.response.headers["x-should-retry"] == "false"


def test_the_key_is_the_client_token(folder: Path, docs: Path) -> None:
    with serving(folder, docs=docs, env={"RAG_CLIENT_TOKEN": CLIENT}) as service:
        with _client(service, "wrong") as stranger, pytest.raises(openai.AuthenticationError) as no:
            stranger.models.list()
        assert no.value.code == "VALIDATION_ERROR"
        with _client(service, CLIENT) as client:
            assert [model.id for model in client.models.list()] == ["unified-flow"]
