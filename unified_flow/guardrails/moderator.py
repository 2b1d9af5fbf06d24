"""Whether a text may be said, by the judgement of an endpoint."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx
from pydantic import BaseModel, ValidationError

from interventions.secrets.redaction import redact_text
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import ConfigError, ModelError, SchemaMismatchError

SWITCH = "OPENAI_MODERATION_ENABLED"
_YES, _NO = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


@dataclass(frozen=True)
class Moderated:
    """`categories`: those that are flagged, with scores 0..1, the greatest first."""

    flagged: bool
    categories: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ModerationFailed:
    """It is unknown whether the text may be said; `error` is for the person who mends it."""

    reason: str
    error: Exception


class Moderator:
    """Any endpoint that speaks OpenAI's `POST /moderations`."""

    def __init__(self, base_url: str, *, api_key: str | None, model: str | None) -> None:
        from unified_flow.servers.client import ServerClient

        self._server = ServerClient(base_url, "moderation", api_key=api_key)
        self._model = model

    async def moderate(self, text: str, timeout_s: float) -> Moderated | ModerationFailed:
        """A failure is a value, because the settings decide what follows."""
        payload = {"input": text} | ({} if self._model is None else {"model": self._model})
        try:
            _, body = await self._server.request("POST", "moderations", timeout_s, payload)
            return _parsed(body, self._server.endpoint)
        except (httpx.HTTPError, ModelError) as exc:
            return ModerationFailed(_reason(exc), exc)

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
                score = _within_bounds(result.category_scores.get(category))
                found[category] = max(found.get(category, 0.0), score)
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return Moderated(any(result.flagged for result in results), dict(ordered))


def _within_bounds(score: float | None) -> float:
    """0..1; one that is no number is certain."""
    return 1.0 if score is None or math.isnan(score) else min(1.0, max(0.0, score))


def _reason(exc: Exception) -> str:
    if isinstance(exc, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(exc, httpx.HTTPStatusError):
        return f"status {exc.response.status_code}"
    if isinstance(exc, httpx.TransportError):
        return "the endpoint cannot be reached"
    return redact_text(str(exc))


def moderator_of(
    settings: GuardrailSettings, environ: Mapping[str, str] = os.environ
) -> Moderator | None:
    """None where no moderation is configured, or it is switched off. Raises ConfigError."""
    switch = environ.get(SWITCH, "").strip().lower()
    if switch and switch not in _YES | _NO:
        raise ConfigError(f"{SWITCH} is neither true nor false", hint=f"export {SWITCH}=true")
    if switch in _NO or settings.moderation_url is None:
        return None
    from unified_flow.servers.keys import read_key

    named = settings.moderation_key_env
    return Moderator(
        settings.moderation_url,
        api_key=None if named is None else read_key(named, environ=environ, needed=True),
        model=settings.moderation_model,
    )
