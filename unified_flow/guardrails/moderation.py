"""Asking somebody else whether a text may be said: an endpoint, or a classifier of one's own."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any

import httpx
from pydantic import BaseModel, ValidationError

from interventions.secrets.redaction import redact_text
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import ConfigError, ModelError, SchemaMismatchError
from unified_flow.guardrails.moderator import Moderated, ModerationFailed, Moderator
from unified_flow.models.openai.model import OpenAIModel
from unified_flow.servers.keys import read_key

SWITCH = "OPENAI_MODERATION_ENABLED"
GROUP = "unified_flow.moderators"
_YES, _NO = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


class _Judged(BaseModel):
    flagged: bool
    categories: dict[str, bool | None] = {}
    category_scores: dict[str, float | None] = {}


class _Reply(BaseModel):
    results: list[_Judged]


class EndpointModerator:
    """Any endpoint that speaks OpenAI's `POST /moderations`."""

    def __init__(
        self, base_url: str, *, api_key: str | None, model: str | None, timeout_s: float
    ) -> None:
        self._server = OpenAIModel("moderation", base_url, "moderation", api_key=api_key)
        self._model = model
        self._timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"EndpointModerator({self._server.endpoint!r})"

    @property
    def endpoint(self) -> str:
        return self._server.endpoint

    async def moderate(self, text: str) -> Moderated:
        """Raises httpx errors, ModelError for a reply that is of no use."""
        payload: dict[str, Any] = {"input": text}
        if self._model is not None:
            payload["model"] = self._model
        _, body = await self._server.request("POST", "moderations", self._timeout_s, payload)
        return _read(body, self.endpoint)

    async def aclose(self) -> None:
        await self._server.aclose()


def _read(body: bytes, endpoint: str) -> Moderated:
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
    """What the moderator says; its failure is a value, because the settings decide what follows.

    That is also no answer within `timeout_s` seconds, or one that is of another type."""
    asking: asyncio.Future[Moderated] | None = None
    try:
        asking = asyncio.ensure_future(moderator.moderate(text))
        # Not wait_for: whoever does not heed its cancellation would be waited for.
        await asyncio.wait({asking}, timeout=timeout_s)
        if not asking.done():
            raise TimeoutError(f"the moderator did not answer within {timeout_s:g} s")
        if asking.cancelled():
            raise SchemaMismatchError("the moderator has cancelled itself")
        return _checked(asking.result())
    except Exception as exc:  # noqa: BLE001 - a foreign classifier may raise anything
        return ModerationFailed(_brief(exc), exc)
    finally:
        if asking is not None:
            asking.cancel()


def _checked(said: object) -> Moderated:
    """A foreign classifier's outcome, its scores within 0..1."""
    if not isinstance(said, Moderated) or not isinstance(said.flagged, bool):
        raise SchemaMismatchError(f"the moderator answered {type(said).__name__}, not Moderated")
    scores = {str(name): _unit(float(score)) for name, score in said.categories.items()}
    return replace(said, categories=scores, name=str(said.name), rule=str(said.rule))


def _unit(score: float) -> float:
    """What is no number counts as certain."""
    return 1.0 if math.isnan(score) else min(1.0, max(0.0, score))


def _brief(exc: Exception) -> str:
    if isinstance(exc, httpx.TimeoutException | TimeoutError):
        return "no answer in time"
    if isinstance(exc, httpx.HTTPStatusError):
        return f"status {exc.response.status_code}"
    if isinstance(exc, httpx.TransportError):
        return "the endpoint cannot be reached"
    if isinstance(exc, ModelError):
        return redact_text(str(exc))
    return type(exc).__name__


def switched_on(environ: Mapping[str, str] = os.environ) -> bool:
    """OPENAI_MODERATION_ENABLED; true unless it says otherwise. Raises ConfigError."""
    value = environ.get(SWITCH, "").strip().lower()
    if value and value not in _YES | _NO:
        raise ConfigError(f"{SWITCH} is neither true nor false", hint=f"export {SWITCH}=true")
    return value not in _NO


def moderator_of(
    settings: GuardrailSettings, environ: Mapping[str, str] = os.environ
) -> Moderator | None:
    """None where no moderation is configured, or it is switched off. Raises ConfigError."""
    if not switched_on(environ):
        return None
    if settings.moderator is not None:
        return _own(settings.moderator)
    if settings.moderation_url is None:
        return None
    key = None
    if settings.moderation_key_env is not None:
        if not environ.get(settings.moderation_key_env, "").strip():
            raise ConfigError(
                f"the environment variable {settings.moderation_key_env}, which should hold the "
                "key of the moderation endpoint, is not set",
                hint=f"export {settings.moderation_key_env}=..., or {SWITCH}=false",
            )
        key = read_key(settings.moderation_key_env, environ=environ)
    return EndpointModerator(
        settings.moderation_url,
        api_key=key,
        model=settings.moderation_model,
        timeout_s=settings.moderation_timeout_s,
    )


def _own(spec: str) -> Moderator:
    """An installed entry point by its name, else `module:name`; a class is called for one."""
    point = next((each for each in entry_points(group=GROUP) if each.name == spec), None)
    try:
        loaded = point.load() if point is not None else _named(spec)
        made = loaded() if callable(loaded) else loaded
    except ConfigError:
        raise
    except (Exception, SystemExit) as exc:  # a foreign module may raise anything on import
        raise ConfigError(
            f"the moderator {spec} cannot be loaded: {type(exc).__name__}: {exc}",
            hint="mend it, or name another in guardrails.moderator",
        ) from exc
    if not isinstance(made, Moderator):
        raise ConfigError(
            f"{spec} is no moderator: it lacks `async moderate(text)` or `async aclose()`",
            hint="architecture/guardrails.md shows one",
        )
    return made


def _named(spec: str) -> Any:
    from unified_flow.tools.loading import object_of

    return object_of(spec)
