"""What the routes share: one object for the life of the app."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Annotated

from fastapi import Depends, Request

from unified_flow.api.facts import ASKING, Facts
from unified_flow.api.metrics import Metrics
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.problem import Problem
from unified_flow.api.problems.rendering import ProblemError
from unified_flow.api.ratelimit import Buckets
from unified_flow.api.readiness import Readiness
from unified_flow.api.running import Running
from unified_flow.api.tokens import Tokens
from unified_flow.flow import UnifiedFlow


@dataclass(frozen=True)
class Serving:
    flow: UnifiedFlow
    tokens: Tokens
    running: Running
    buckets: Buckets
    metrics: Metrics
    readiness: Readiness


# Coroutines all: FastAPI runs a plain function in a thread, and the way there and back costs a
# request more than what these do.
async def serving_of(request: Request) -> Serving:
    serving: Serving = request.app.state.serving
    return serving


async def facts_of_request(request: Request) -> Facts:
    facts: Facts = request.state.facts
    return facts


def one_too_many(buckets: Buckets, facts: Facts) -> Problem | None:
    """What a client is told that asks too often. Only questions count."""
    if facts.method != "POST" or facts.path not in ASKING:
        return None
    wait_s = buckets.take(facts.client, monotonic())
    if not wait_s or buckets.rate is None:
        return None
    return problems.limited(buckets.rate.limit_name, buckets.rate, wait_s)


Served = Annotated[Serving, Depends(serving_of)]
OfRequest = Annotated[Facts, Depends(facts_of_request)]


async def for_triage(serving: Served, request: Request) -> None:
    """Raises ProblemError: 403 where no token is set, 401 for another one."""
    tokens = serving.tokens
    if tokens.triage is None:
        raise ProblemError(problems.of_status(403))
    if not tokens.is_triage(request.headers.get("authorization", "")):
        raise ProblemError(problems.of_status(401))
