"""Is a model server there, does it take the key, has it the model? For `doctor` and `/ready`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches

import httpx

from unified_flow.errors import ConfigError, ReplyTooLargeError
from unified_flow.models import Model
from unified_flow.models.circuit_breaker import BoundedModel
from unified_flow.models.local_model import LocalModel
from unified_flow.models.openai.model import OpenAIModel
from unified_flow.servers.llama_server import LocalModelError

PROBE_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Probe:
    """`ok`: it can be asked, as far as the server says; `hint` is what to do where it cannot."""

    ok: bool
    message: str
    hint: str | None = None


def unwrapped(model: Model) -> Model:
    """The model itself, without a policy's time-out and breaker."""
    return model.model if isinstance(model, BoundedModel) else model


async def probe_local(model: LocalModel) -> Probe:
    """Loads it, unless that is done, which may take as long as `start_timeout_s` allows."""
    try:
        served = await model.served()
    except (ConfigError, LocalModelError) as exc:
        return Probe(False, str(exc), exc.hint)
    found = await probe(served)
    return Probe(True, f"{model.path.name} is loaded and answers") if found.ok else found


async def probe(model: OpenAIModel, timeout_s: float = PROBE_TIMEOUT_S) -> Probe:
    """GET /models, within `timeout_s`. Costs no tokens and never raises for what it finds."""
    at = model.server.endpoint
    try:
        _, body = await model.server.request("GET", "models", timeout_s)
    except (httpx.HTTPStatusError, ReplyTooLargeError) as exc:
        if isinstance(exc, httpx.HTTPStatusError) and exc.response.status_code in (404, 405, 501):
            hint = "If a question fails with 404, the base URL is wrong: it mostly ends in /v1."
            return Probe(True, f"{at} answers and has no list of models", hint)
        return Probe(False, str(exc), getattr(exc, "hint", None))
    except httpx.TimeoutException:
        hint = "Is the server still loading its model, or does a firewall swallow the connection?"
        return Probe(False, f"{at} did not answer in {timeout_s:g} s", hint)
    except httpx.TransportError as exc:
        hint = "Start the server, or mend the base URL."
        return Probe(False, f"{at} cannot be reached: {exc}", hint)
    names = _names(body)
    if names is None:
        hint = "Mend the base URL: it mostly ends in /v1."
        return Probe(False, f"{at} answers, but not as an OpenAI-compatible API", hint)
    return _listed(model.model, names, at)


def _listed(wanted: str, names: tuple[str, ...], at: str) -> Probe:
    # Ollama means its newest by a bare name; Gemini lists its models under a folder.
    if {wanted, f"{wanted}:latest", f"models/{wanted}"} & set(names):
        return Probe(True, f"{at} has {wanted}")
    if not names:
        return Probe(True, f"{at} answers and lists no models")
    close = get_close_matches(wanted, names, n=3, cutoff=0.4) or names[:5]
    return Probe(False, f"{at} has no model {wanted!r}", f"It has: {', '.join(close)}.")


def _names(body: bytes) -> tuple[str, ...] | None:
    try:
        listed = json.loads(body)
    except (ValueError, RecursionError):
        return None
    data = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(data, list):
        return None
    items = [item for item in data if isinstance(item, dict)]
    ids = [item.get("id") for item in items]
    also = [item.get("aliases") for item in items]  # of llama.cpp
    aliases = [alias for each in also if isinstance(each, list) for alias in each]
    return tuple(dict.fromkeys(name for name in (*ids, *aliases) if isinstance(name, str)))
