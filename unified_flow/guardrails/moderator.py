"""Whether a text may be said, by another's judgement: an endpoint, or a classifier of one's own.

The seam for a classifier of one's own is `Moderator` and what it returns, `Moderated`.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ValidationError

from interventions.secrets.redaction import redact_text
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import ConfigError, ModelError, SchemaMismatchError

SWITCH = "OPENAI_MODERATION_ENABLED"
ENTRY_POINTS = "unified_flow.moderators"
_YES, _NO = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


@dataclass(frozen=True)
class Moderated:
    """`categories`: those that are flagged, with scores 0..1, the greatest first."""

    flagged: bool
    categories: Mapping[str, float] = field(default_factory=dict)
    name: str = "OpenAI Moderation"
    rule: str = "openai_moderation"


@dataclass(frozen=True)
class ModerationFailed:
    """It is unknown whether the text may be said; `error` is for the person who mends it."""

    reason: str
    error: Exception


@runtime_checkable
class Moderator(Protocol):
    """A local classifier needs no more than this. May raise anything: that is a failure."""

    async def moderate(self, text: str) -> Moderated: ...

    async def aclose(self) -> None: ...


class EndpointModerator:
    """Any endpoint that speaks OpenAI's `POST /moderations`."""

    def __init__(
        self, base_url: str, *, api_key: str | None, model: str | None, timeout_s: float
    ) -> None:
        from unified_flow.servers.client import ServerClient

        self._server = ServerClient(base_url, "moderation", api_key=api_key)
        self._model = model
        self._timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"EndpointModerator({self._server.endpoint!r})"

    async def moderate(self, text: str) -> Moderated:
        """Raises httpx errors, ModelError for a reply that is of no use."""
        payload = {"input": text} | ({} if self._model is None else {"model": self._model})
        _, body = await self._server.request("POST", "moderations", self._timeout_s, payload)
        return _parsed(body, self._server.endpoint)

    async def aclose(self) -> None:
        await self._server.aclose()


class _Result(BaseModel):
    flagged: bool
    categories: dict[str, bool | None] = {}
    category_scores: dict[str, float | None] = {}


class _Reply(BaseModel):
    results: list[_Result]


def _parsed(body: bytes, endpoint: str) -> Moderated:
    try:
        results = _Reply.model_validate(json.loads(body)).results
    except (ValueError, RecursionError) as exc:
        what = "what is no moderation" if isinstance(exc, ValidationError) else "no JSON"
        raise SchemaMismatchError(f"{endpoint} answered {what}") from exc
    if not results:
        raise SchemaMismatchError(f"{endpoint} answered without a result")
    found: dict[str, float] = {}
    for result in results:
        for category, flagged in result.categories.items():
            if flagged:
                score = result.category_scores.get(category)
                found[category] = max(found.get(category, 0.0), 1.0 if score is None else score)
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return Moderated(any(result.flagged for result in results), dict(ordered))


async def moderated(
    moderator: Moderator, text: str, timeout_s: float
) -> Moderated | ModerationFailed:
    """The moderator's judgement; its failure is a value, because the settings decide what follows.

    No answer within `timeout_s` seconds is a failure, and so is one of another type."""
    asking: asyncio.Future[Moderated] | None = None
    try:
        asking = asyncio.ensure_future(moderator.moderate(text))
        # Not wait_for: it would wait for a moderator that ignores its cancellation.
        await asyncio.wait({asking}, timeout=timeout_s)
        if not asking.done():
            raise TimeoutError(f"the moderator did not answer within {timeout_s:g} s")
        if asking.cancelled():
            raise SchemaMismatchError("the moderator has cancelled itself")
        return _checked(asking.result())
    except Exception as exc:  # noqa: BLE001 - a foreign classifier may raise anything
        return ModerationFailed(_reason(exc), exc)
    finally:
        if asking is not None:
            asking.cancel()


def _checked(answer: object) -> Moderated:
    """A foreign classifier's answer, its scores within 0..1; one that is no number is certain."""
    if not isinstance(answer, Moderated) or not isinstance(answer.flagged, bool):
        raise SchemaMismatchError(f"the moderator answered {type(answer).__name__}, not Moderated")
    scores = {str(name): float(score) for name, score in answer.categories.items()}
    scores = {name: 1.0 if math.isnan(s) else min(1.0, max(0.0, s)) for name, s in scores.items()}
    return replace(answer, categories=scores, name=str(answer.name), rule=str(answer.rule))


def _reason(exc: Exception) -> str:
    import httpx

    if isinstance(exc, httpx.TimeoutException | TimeoutError):
        return "no answer in time"
    if isinstance(exc, httpx.HTTPStatusError):
        return f"status {exc.response.status_code}"
    if isinstance(exc, httpx.TransportError):
        return "the endpoint cannot be reached"
    if isinstance(exc, ModelError):
        return redact_text(str(exc))
    return type(exc).__name__


def moderator_of(
    settings: GuardrailSettings, environ: Mapping[str, str] = os.environ
) -> Moderator | None:
    """None where no moderation is configured, or it is switched off. Raises ConfigError."""
    switch = environ.get(SWITCH, "").strip().lower()
    if switch and switch not in _YES | _NO:
        raise ConfigError(f"{SWITCH} is neither true nor false", hint=f"export {SWITCH}=true")
    if switch in _NO:
        return None
    if settings.moderator is not None:
        return _own_moderator(settings.moderator)
    if settings.moderation_url is None:
        return None
    from unified_flow.servers.keys import read_key

    named = settings.moderation_key_env
    return EndpointModerator(
        settings.moderation_url,
        api_key=None if named is None else read_key(named, environ=environ, needed=True),
        model=settings.moderation_model,
        timeout_s=settings.moderation_timeout_s,
    )


def _own_moderator(spec: str) -> Moderator:
    """An installed entry point by its name, else `module:name`; a class is called for one."""
    from importlib.metadata import entry_points

    from unified_flow.tools.plugins import loading, object_of

    point = next((each for each in entry_points(group=ENTRY_POINTS) if each.name == spec), None)
    with loading(f"the moderator {spec}", "mend it, or name another in guardrails.moderator"):
        loaded: Any = point.load() if point is not None else object_of(spec)
        made = loaded() if callable(loaded) else loaded
    if not isinstance(made, Moderator):
        raise ConfigError(
            f"{spec} is no moderator: it lacks `async moderate(text)` or `async aclose()`",
            hint="architecture/guardrails.md shows one",
        )
    return made
