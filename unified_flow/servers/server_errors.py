"""httpx's errors about a model server: which server was asked, why it refused, what to do.

"All connection attempts failed" helps nobody who has two servers. An error keeps its type, so that
code that sorts errors by type need not know this module. A refusal (any status but 2xx) carries the
server's own words, bounded and without the key; the attached response keeps the few headers that a
policy or a person needs (Retry-After, the request id).
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, TypeVar

import httpx

Error = TypeVar("Error", bound=httpx.HTTPError)

_SHOWN = 300
_KEPT_HEADERS = ("retry-after", "content-type", "x-request-id")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|hf|xai|key)[-_][\w*.-]{6,}|(?<=[Bb]earer )[\w*.~+/=-]{6,}")
_WORD = re.compile(r"[^\s\"'<>,;:()\[\]{}]{6,}")

VENDORS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("vendors.toml").read_text(encoding="utf-8")
)
_HINTS: dict[str, str] = VENDORS["hints"]
LARGER_CONTEXT = _HINTS["larger_context"]


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
    if status == 503 and _says("loading", reason):
        return _HINTS["loading"]
    if status in (400, 404) and _says("no_model", reason):
        return _HINTS["no_model"]
    return _HINTS.get(str(min(status, 500)))


def is_too_long(status: int, reason: str) -> bool:
    """True if the prompt, with room for the answer, does not fit what the model can hold."""
    return status in (400, 413, 422, 500) and _says("too_long", reason)


def _says(what: str, reason: str) -> bool:
    return re.search(VENDORS["refusals"][what], reason, re.IGNORECASE) is not None


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
