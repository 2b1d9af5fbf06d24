"""httpx's errors about a model server: which server was asked, why it refused, what to do.

"All connection attempts failed" helps nobody who has two servers. An error keeps its type, so that
code that sorts errors by type need not know this module. A refusal (any status but 2xx) carries the
server's own words, bounded and without the key; the attached response keeps the few headers that a
policy or a person needs (Retry-After, the request id).
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import httpx

Error = TypeVar("Error", bound=httpx.HTTPError)

_SHOWN = 300
_KEPT_HEADERS = ("retry-after", "content-type", "x-request-id")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|hf|xai|key)[-_][\w*.-]{6,}|(?<=[Bb]earer )[\w*.~+/=-]{6,}")
_WORD = re.compile(r"[^\s\"'<>,;:()\[\]{}]{6,}")

_HINTS = {
    400: "The server rejected the request: its words say why, and its own log more.",
    401: "Check the key: is the right environment variable or file configured?",
    403: "The key is not allowed to use this model.",
    404: "Check the base URL (it mostly ends in /v1) and the model's name: unified-flow doctor.",
    429: "The server limits the rate or the quota is used up: wait, or raise the limit.",
}
LARGER_CONTEXT = (
    "Start the server with a larger context (llama.cpp: -c, vLLM: --max-model-len, Ollama:"
    " OLLAMA_CONTEXT_LENGTH), or take a model that has one."
)
_NO_MODEL = "The server has no model of this name: unified-flow doctor lists those it has."
_LOADING = "The server is still loading its model: wait until it has, then let the turn go on."

# Of llama.cpp, vLLM and OpenAI, Mistral, Anthropic, Gemini, in this order.
_TOO_LONG = re.compile(
    r"exceeds? the available context|maximum context length|too large for model|prompt is too long"
    r"|exceeds the maximum number of tokens|context length|context window",
    re.IGNORECASE,
)
_MODEL_MISSING = re.compile(
    r"model\b.{0,80}(?:not found|not exist|no such|unknown)|(?:invalid|unknown|no such) model",
    re.IGNORECASE,
)


def transport_error(
    error: httpx.TransportError, target: str, request: httpx.Request
) -> httpx.TransportError:
    """The same kind of error with its target in the message, and a hint."""
    reason = str(error) or type(error).__name__
    same = type(error)(f"{reason} (asked {target})", request=request)
    return hinted(same, _hint(error))


def timeout_error(target: str, timeout_s: float, request: httpx.Request) -> httpx.TransportError:
    error = httpx.ReadTimeout(
        f"no complete reply in {timeout_s:g} s (asked {target})", request=request
    )
    return hinted(error, _hint(error))


def status_error(
    response: httpx.Response, body: bytes, endpoint: str, secret: str | None, larger_context: str
) -> httpx.HTTPStatusError:
    """`body` is the beginning of what the server sent with its refusal."""
    reason = _redacted(_message_in(body), secret)[:_SHOWN]
    status = f"{response.status_code} {response.reason_phrase}".strip()
    message = f"{status} from the model server {endpoint}" + (f": {reason}" if reason else "")
    if response.is_redirect:
        message += " (redirects are not followed: they would carry the key elsewhere)"
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    bounded = httpx.Response(
        response.status_code, headers=headers, text=reason, request=response.request
    )
    error = httpx.HTTPStatusError(message, request=response.request, response=bounded)
    return hinted(error, status_hint(response.status_code, reason, larger_context))


def status_hint(status: int, reason: str = "", larger_context: str = LARGER_CONTEXT) -> str | None:
    """What to do about it; `larger_context` says how this server gets one."""
    if is_too_long(status, reason):
        return f"{larger_context} Fewer or shorter documents make the prompt shorter."
    if status == 503 and "loading" in reason.lower():
        return _LOADING
    if status in (400, 404) and _MODEL_MISSING.search(reason):
        return _NO_MODEL
    if status >= 500:
        return "The model server failed: its own log says why."
    return _HINTS.get(status)


def is_too_long(status: int, reason: str) -> bool:
    """True if the prompt, with room for the answer, does not fit what the model can hold."""
    return status in (400, 413, 422, 500) and _TOO_LONG.search(reason) is not None


def _message_in(body: bytes) -> str:
    """The message of an OpenAI-style error, or the beginning of the text."""
    text = body.decode("utf-8", "replace")
    try:
        reason: Any = json.loads(text)
    except (ValueError, RecursionError):
        reason = text
    for key in ("error", "message", "detail"):
        if isinstance(reason, dict) and reason.get(key):
            reason = reason[key]
    shown = reason if isinstance(reason, str) else json.dumps(reason)
    printable = "".join(c if c.isprintable() else " " for c in shown)
    return " ".join(printable.split())


def _redacted(text: str, secret: str | None) -> str:
    text = _KEY_LIKE.sub("[redacted]", text)
    if not secret:
        return text
    text = text.replace(secret, "[redacted]")
    # Servers like to echo the beginning or the end of a key that they refuse.
    return _WORD.sub(lambda m: "[redacted]" if m[0].strip("*.…") in secret else m[0], text)


def hinted(error: Error, hint: str | None) -> Error:
    """An error is shown with its `hint`, an attribute that httpx's classes lack."""
    vars(error)["hint"] = hint
    return error


def _hint(error: httpx.TransportError) -> str:
    match error:
        case httpx.TimeoutException():
            return "Is the server busy or still loading? Else raise the model's timeout_s."
        case httpx.ConnectError():
            return "Start the model server, or mend the base URL: unified-flow doctor tries it."
        case httpx.ProxyError():
            return "Mend the proxy in HTTP_PROXY or HTTPS_PROXY, or except the host in NO_PROXY."
    return "The connection broke off: the model server's own log says why."
