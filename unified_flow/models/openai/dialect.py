"""How a server wants to be asked: the differences among OpenAI-compatible servers' requests.

A server that does not know a field of a request refuses it before it does any work (400 or 422,
naming the field). The same question is then asked without it, for the rest of the process; no
failure to answer is ever repeated. A new server dialect is a field of `Dialect` and a step
in `servers/vendors.toml`. `completion.py` reads what differs among replies, `models/reply.py` what
differs among the texts in them. docs/servers.md lists who needs what.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

from unified_flow.models import ModelCall
from unified_flow.models.schema import response_format
from unified_flow.servers.server_errors import VENDORS, is_too_long


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


@dataclass(frozen=True)
class _Step:
    """A refusal of one of the `statuses` that has these `words` wants a field that is as `before`
    to be as `then`."""

    words: str
    before: dict[str, Any]
    then: dict[str, Any]
    statuses: Collection[int] = (400, 422)


_STEPS = tuple(_Step(**each) for each in VENDORS["dialect"])


def adapted(dialect: Dialect, status: int, reason: str) -> Dialect | None:
    """The dialect that this refusal asks for; None if another would not help."""
    if is_too_long(status, reason):
        return None
    for step in _STEPS:
        if (
            status in step.statuses
            and step.before.items() <= vars(dialect).items()
            and re.search(step.words, reason, re.IGNORECASE | re.DOTALL)
        ):
            return replace(dialect, **step.then)
    return None


def _one_message(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"role": "user", "content": "\n\n".join(each["content"] for each in messages)}]
