"""What a chat-completions server sends, whole or as server-sent events: the envelope of an answer.

While a stream arrives, `StreamPreview` shows the text of the answer so far. Nothing is decided on
that: the whole body is read like any other reply, and a stream that is cut is a failure, whatever
was shown of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic_core import from_json

from unified_flow.errors import CutReplyError, EmptyReplyError, NotJSONError
from unified_flow.models import ModelReply
from unified_flow.models.reply import ends_early, reasoning_end
from unified_flow.servers.client import LARGER_CONTEXT, VENDORS, message_in

_SHOWN = 300
_END_OF_EVENT = re.compile(rb"\r?\n\r?\n")
_MORE_TOKENS = "Raise token_budget in the phase's recipe, or use a model that says less."

# Anything else ("stop", null, "eos", ...) is a reply that the model ended itself.
_OUT_OF_TOKENS: list[str] = VENDORS["finish_reasons"]["out_of_tokens"]
_CUT: dict[str, str] = VENDORS["finish_reasons"]["cut"]


def read_completion(body: bytes, content_type: str, *, max_tokens: int) -> ModelReply:
    """Raises NotJSONError (no completion at all), EmptyReplyError, CutReplyError.

    Some servers stream even if not asked to; an event stream counts only with its end.
    """
    if _is_stream(body, content_type):
        reply, choice, message = _read_stream(body)
    else:
        envelope = _loads(body)
        choice = _choice(envelope)
        message = choice.get("message")
        reply = ModelReply(_text(message), *_usage(envelope))
    reason = str(choice.get("finish_reason") or "").lower()[:40]
    problem = f"the model's reply is cut after {len(reply.text)} characters"
    if not reply.text.strip():
        problem = _why_empty(message)
    if reason in _OUT_OF_TOKENS:
        raise _out_of_tokens(f"{problem} (finish_reason {reason})", reply, max_tokens)
    if reason in _CUT:
        words = f": {message_in(choice)[:_SHOWN]}" if choice.get("error") else ""
        raise CutReplyError(f"{problem} (finish_reason {reason}): {_CUT[reason]}{words}")
    if not reply.text.strip():
        raise EmptyReplyError(f"{problem} (finish_reason {reason})" if reason else problem)
    return reply


def _is_stream(body: bytes, content_type: str) -> bool:
    """Whether it says so, or begins so: gateways send streams as plain text."""
    return content_type.partition(";")[0].strip().lower() == "text/event-stream" or bool(
        body.lstrip().startswith((b"data:", b"event:"))
    )


def _read_stream(body: bytes) -> tuple[ModelReply, dict[str, Any], Any]:
    parts: list[str] = []
    reason: Any = None
    usage: tuple[int | None, int | None] = (None, None)
    ended = False
    for name, data in EventReader().feed(body):
        if data == "[DONE]":
            ended = True
            break
        if name == "error":
            raise _broken_off(data)
        event = _loads(data.encode())
        if event.get("error") or event.get("object") == "error":
            raise _broken_off(event)
        if event.get("choices"):
            choice = _choice(event)
            if choice.get("error"):
                raise _broken_off(choice)
            parts.append(_text(choice.get("delta")))
            reason = choice.get("finish_reason") or reason
        if event.get("usage"):
            usage = _usage(event)
    text = "".join(parts)
    if not ended and reason is None:
        raise CutReplyError(f"the stream ended without its end after {len(text)} characters")
    return ModelReply(text, *usage), {"finish_reason": reason}, None


class EventReader:
    """Server-sent events out of pieces of a stream; an unfinished last one is not an event."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[tuple[str, str]]:
        """Name and data of each event that ends in this piece."""
        *events, self._rest = _END_OF_EVENT.split(self._rest + chunk)
        for event in events:
            text = event.decode("utf-8", "replace").replace("\r\n", "\n")
            lines = [line.partition(":") for line in text.split("\n")]
            data = [value.removeprefix(" ") for field, _, value in lines if field == "data"]
            names = [value.strip() for field, _, value in lines if field == "event"]
            if data:
                yield (names[-1] if names else ""), "\n".join(data)


def _loads(body: bytes) -> dict[str, Any]:
    text = body.decode("utf-8", "replace")
    try:
        envelope = json.loads(text)
    except RecursionError as exc:
        raise NotJSONError("the server's response is nested too deeply", text[:_SHOWN], 0) from exc
    except json.JSONDecodeError as exc:
        # Without a Content-Length, HTTP itself cannot tell a cut body from a whole one.
        if text.strip() and ends_early(exc):
            raise CutReplyError("the server's response ends in the middle of its JSON") from exc
        raise NotJSONError(
            f"the server's response is not JSON (it begins {text[:60]!r})",
            text[:_SHOWN],
            exc.pos,
            hint="Check that the base URL is an OpenAI-compatible API's (it mostly ends in /v1).",
        ) from exc
    if not isinstance(envelope, dict):
        raise EmptyReplyError(f"the server's response is no completion: {text[:_SHOWN]!r}")
    return envelope


def _choice(envelope: dict[str, Any]) -> dict[str, Any]:
    choices = envelope.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    if "error" in envelope:
        raise EmptyReplyError(f"the server answered with an error: {message_in(envelope)[:_SHOWN]}")
    raise EmptyReplyError(
        "the server's response has no choices",
        hint="Check the model name and the base URL: is it a chat-completions server?",
    )


def _text(message: Any) -> str:
    """The content of a message or of a stream's delta; some servers give it as a list of parts."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        return "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return content if isinstance(content, str) else ""


def _out_of_tokens(problem: str, reply: ModelReply, max_tokens: int) -> CutReplyError:
    """Either the phase's own budget or the server's context: servers give both the same reason."""
    prompt, written = reply.prompt_tokens, reply.completion_tokens
    if prompt is not None and written is not None and written < max_tokens:
        return CutReplyError(
            f"{problem}: the server's context is full with {prompt} tokens of prompt and {written}"
            f" of the {max_tokens} that the answer may have",
            hint=LARGER_CONTEXT,
        )
    return CutReplyError(
        f"{problem}: it reached its token limit of {max_tokens}", hint=_MORE_TOKENS
    )


def _why_empty(message: Any) -> str:
    if isinstance(message, dict):
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            return f"the model refused to answer: {refusal[:_SHOWN]}"
        if message.get("tool_calls"):
            return "the model asked for a tool call of its own and wrote no reply"
        if message.get("reasoning_content") or message.get("reasoning"):
            return "the model reasoned and wrote no reply"
    return "the model's reply is empty"


def _broken_off(error: Any) -> CutReplyError:
    return CutReplyError(f"the stream broke off with an error: {message_in(error)[:_SHOWN]}")


def _usage(envelope: dict[str, Any]) -> tuple[int | None, int | None]:
    usage = envelope.get("usage")
    if not isinstance(usage, dict):
        return None, None
    counts = (
        usage.get("prompt_tokens", usage.get("input_tokens")),
        usage.get("completion_tokens", usage.get("output_tokens")),
    )
    prompt, completion = (n if type(n) is int and n >= 0 else None for n in counts)
    return prompt, completion


class StreamPreview:
    """Gives `show` the field `field` of the JSON answer so far, whenever it has grown.

    `secret` is never shown, nor a beginning of it at the end of the text.
    """

    def __init__(self, show: Callable[[str], None], field: str, secret: str | None) -> None:
        self._show = show
        self._field = field
        self._secret = secret
        self._events = EventReader()
        self._reply = ""
        self._shown = ""

    def feed(self, chunk: bytes) -> None:
        added = "".join(_added_text(data) for _, data in self._events.feed(chunk))
        if not added:
            return
        self._reply += added
        start = self._reply.find("{", reasoning_end(self._reply))
        if start < 0:
            return
        try:
            answer = from_json(self._reply[start:], allow_partial="trailing-strings")
        except ValueError:
            return  # it is no JSON: the reader of the whole reply will say so
        text = answer.get(self._field) if isinstance(answer, dict) else None
        if isinstance(text, str) and (text := self._without_secret(text)) != self._shown:
            self._shown = text
            self._show(text)

    def _without_secret(self, text: str) -> str:
        if not self._secret:
            return text
        text = text.replace(self._secret, "[redacted]")
        for length in range(min(len(self._secret), len(text)), 0, -1):
            if text.endswith(self._secret[:length]):
                return text[:-length]
        return text


def _added_text(data: str) -> str:
    """What one event adds to the reply; "" for whatever else it is."""
    try:
        return _text(json.loads(data)["choices"][0]["delta"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
