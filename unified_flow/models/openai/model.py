"""A language model behind any OpenAI-compatible chat-completions endpoint.

Errors: httpx's own for what the network and the server do (`servers/client.py`), `ModelError`s for
a reply that is of no use. No failure to answer is ever repeated. A server that does not know a
field of a request refuses it before it does any work (400 or 422, naming the field): the same
question is then asked without it, for the rest of the process.

A new server dialect is a field of `Dialect` and a step in `servers/vendors.toml`. `completion.py`
reads what differs among replies, `models/reply.py` what differs among the texts in them.
docs/how-to/model-servers.md lists who needs what.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import httpx

from unified_flow.models import ModelCall, ModelReply, estimate_tokens
from unified_flow.models.openai.completion import StreamPreview, read_completion
from unified_flow.models.prompt import prompt
from unified_flow.models.schema import response_format
from unified_flow.servers.client import VENDORS, ServerClient, is_too_long

logger = logging.getLogger(__name__)
DEFAULT_TIMEOUT_S = 60.0
_REFUSED = (400, 422)  # the statuses of a request with a field that a server does not know
_SMALLEST_CONTEXT = 1000  # a server that leaves out what it had cached counts fewer tokens


@dataclass(frozen=True)
class Dialect:
    """Which fields a request has; the default is what OpenAI documents."""

    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    top_p: bool = True
    usage_of_stream: bool = True
    stream: Literal["as_wanted", "always", "never"] = "as_wanted"
    system_role: bool = True

    def payload(self, call: ModelCall, model: str, messages: list[dict[str, str]]) -> Any:
        """The body of a chat completion; the prompt has the schema as well."""
        stream = self.stream == "always" or (self.stream != "never" and call.stream is not None)
        body: dict[str, Any] = {
            "model": model,
            "messages": messages if self.system_role else _one_message(messages),
            self.limit: call.max_tokens,
        }
        if self.stream != "never":
            body["stream"] = stream
        if self.temperature:
            body["temperature"] = call.temperature
        if self.top_p and call.top_p is not None:
            body["top_p"] = call.top_p
        if self.response_format == "json_schema":
            body["response_format"] = response_format(call.phase, call.output)
        elif self.response_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        if stream and self.usage_of_stream:
            body["stream_options"] = {"include_usage": True}
        return body


def adapted(dialect: Dialect, status: int, reason: str) -> Dialect | None:
    """The dialect that this refusal asks for; None if another would not help."""
    if is_too_long(status, reason):
        return None
    for step in VENDORS["dialect"]:
        if (
            status in step.get("statuses", _REFUSED)
            and step["before"].items() <= vars(dialect).items()
            and re.search(step["words"], reason, re.IGNORECASE | re.DOTALL)
        ):
            return replace(dialect, **step["then"])
    return None


def _one_message(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"role": "user", "content": "\n\n".join(each["content"] for each in messages)}]


class OpenAIModel:
    """`timeout_s` bounds a call as a whole, from connecting to the last byte."""

    def __init__(
        self,
        name: str,
        base_url: str,
        model: str,
        api_key: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        self.name = name
        self.model = model
        self.timeout_s = timeout_s
        self.server = ServerClient(base_url, model, api_key=api_key)
        self._dialect = Dialect()

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, {self.server.endpoint!r}, {self.model!r})"

    async def complete(self, call: ModelCall) -> ModelReply:
        """Raises what `ServerClient.request` and `read_completion` raise."""
        made = prompt(call)
        on_chunk = None
        if call.stream is not None:
            on_chunk = StreamPreview(call.stream.show, call.stream.field, self.server.secret).feed
        try:
            response, body = await self._post(call, made.messages, on_chunk)
            reply = read_completion(
                self.server.without_key(body),
                response.headers.get("content-type", ""),
                max_tokens=call.max_tokens,
            )
        except Exception as exc:  # only to be labelled: the boundary reports it
            vars(exc)["model_call"] = self._label(call, made.messages)
            raise
        self._warn_if_cut(reply, made.messages)
        return replace(reply, left_out=made.left_out) if made.left_out else reply

    async def _post(
        self,
        call: ModelCall,
        messages: list[dict[str, str]],
        on_chunk: Callable[[bytes], None] | None,
    ) -> tuple[httpx.Response, bytes]:
        while True:
            # Calls run side by side: by the time of a refusal another may have adapted the dialect.
            dialect = self._dialect
            payload = dialect.payload(call, self.model, messages)
            try:
                return await self.server.request(
                    "POST", "chat/completions", self.timeout_s, payload, on_chunk=on_chunk
                )
            except httpx.HTTPStatusError as exc:
                other = adapted(dialect, exc.response.status_code, exc.response.text)
                if other is None:
                    raise
                if self._dialect == dialect:
                    logger.warning("%s; asked again: %s", exc, other)
                    self._dialect = other

    def _label(self, call: ModelCall, messages: list[dict[str, str]]) -> dict[str, Any]:
        """What an exception of the call carries as its `model_call`. It keeps its type, so that
        code that sorts errors by type need not know this module."""
        return {
            "asked": self.model,
            "server": self.server.endpoint,
            "prompt_tokens_about": _prompt_tokens(messages),
            "answer_tokens_at_most": call.max_tokens,
            "response_format": self._dialect.response_format,
            "timeout_s": self.timeout_s,
        }

    def _warn_if_cut(self, reply: ModelReply, messages: list[dict[str, str]]) -> None:
        """If the server counted so few tokens of a prompt that it cannot have read it all. A cut
        that takes less than half looks like a tokenizer that makes few tokens."""
        counted = reply.prompt_tokens
        if counted is None or counted < _SMALLEST_CONTEXT:
            return
        if counted < (estimated := _prompt_tokens(messages)) / 2:
            logger.warning(
                "%s at %s read %s tokens of a prompt of about %s: it cuts what its context cannot"
                " hold and reports nothing (Ollama: raise OLLAMA_CONTEXT_LENGTH)",
                self.model,
                self.server.endpoint,
                counted,
                estimated,
            )

    async def aclose(self) -> None:
        await self.server.aclose()


def _prompt_tokens(messages: list[dict[str, str]]) -> int:
    return sum(estimate_tokens(message["content"]) for message in messages)
