"""How a server wants to be asked: the differences among OpenAI-compatible servers' requests.

A server that does not know a field of a request refuses it before it does any work (400 or 422,
naming the field). The same question is then asked without it, for the rest of the process; no
failure to answer is ever repeated. A new server dialect is a field of `Dialect` and a line of
`_steps`. `completion.py` reads what differs among replies, `models/reply.py` what differs among the
texts in them. docs/servers.md lists who needs what.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from unified_flow.models import ModelCall
from unified_flow.models.schema import response_format
from unified_flow.servers.server_errors import is_too_long

_REFUSED = frozenset({400, 422})
_NOT_IMPLEMENTED = frozenset({400, 422, 501})
_TEMPLATE_RAISED = frozenset({400, 422, 500})


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
    """The dialect that this refusal asks for; None if another would not help.

    Each step gives something up for good, so that asking again comes to an end.
    """
    if is_too_long(status, reason):
        return None
    for pattern, statuses, other in _steps(dialect):
        if status in statuses and pattern.search(reason) and other != dialect:
            return other
    return None


def _steps(dialect: Dialect) -> tuple[tuple[re.Pattern[str], frozenset[int], Dialect], ...]:
    weaker: Literal["json_object", "none"] = (
        "json_object" if dialect.response_format == "json_schema" else "none"
    )
    # Once: a server that refuses both ways cannot be asked.
    always, never = dialect, dialect
    if dialect.stream == "as_wanted":
        always, never = replace(dialect, stream="always"), replace(dialect, stream="never")
    return (
        (_STREAM_OPTIONS, _REFUSED, replace(dialect, usage_of_stream=False)),
        (_LIMIT, _REFUSED, replace(dialect, limit="max_completion_tokens")),
        (_FORMAT, _REFUSED, replace(dialect, response_format=weaker)),
        (_TOP_P, _REFUSED, replace(dialect, top_p=False)),
        (_TEMPERATURE, _REFUSED, replace(dialect, temperature=False)),
        (_ONLY_STREAMS, _REFUSED, always),
        (_NEVER_STREAMS, _NOT_IMPLEMENTED, never),
        (_SYSTEM_ROLE, _TEMPLATE_RAISED, replace(dialect, system_role=False)),
    )


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_STREAM_OPTIONS = _words(r"stream_options")
_LIMIT = _words(r"max_tokens.*max_completion_tokens")
_FORMAT = _words(r"response[_ ]format|json_schema|json_object|structured output|grammar")
_TOP_P = _words(r"top_p")
_TEMPERATURE = _words(r"temperature")
_ONLY_STREAMS = _words(r"only supports? stream|stream\W+(?:must be|to be) (?:set to )?true")
_NEVER_STREAMS = _words(
    r"(?<!non.)\bstream(?:ing)?\b.{0,60}(?:\bnot\b|unsupported|disabled|must be (?:set to )?false)"
    r"|(?:\bnot\b|n't|cannot|unsupported|unknown|unexpected).{0,60}(?<!non.)\bstream(?:ing)?\b"
    r"|verified to stream"
)
_SYSTEM_ROLE = _words(r"system role|must alternate|(?:system|developer) (?:instruction|message)")


def _one_message(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"role": "user", "content": "\n\n".join(each["content"] for each in messages)}]
