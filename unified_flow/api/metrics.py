"""What Prometheus reads. Counted where it happens; the queue is read when somebody scrapes."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from http import HTTPStatus
from time import monotonic
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from interventions.errors import QueueError
from interventions.health import Health
from interventions.secrets.redaction import redact_text
from unified_flow.api.facts import Facts
from unified_flow.api.problems.problem import CLIENT_CLOSED
from unified_flow.errors import RetrievalError
from unified_flow.guardrails.decisions import GuardrailStats
from unified_flow.turns.events import (
    Observed,
    PhaseCompleted,
    PhaseFailed,
    TurnCompleted,
    TurnInterrupted,
)

SLO_5XX = 0.001  # graceful-degradation-adr.md: 99.9 %
RETRY_WINDOW_S = 300.0
MOST_WAITING = 10_000
MOST_RULES = 100
BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 3, 5, 10, 30, 60)


class Metrics:
    def __init__(
        self,
        queue_health: Callable[[], Health],
        running: Callable[[], int],
        guarded: Callable[[], GuardrailStats | None] = lambda: None,
    ) -> None:
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry, "namespace": "unified_flow"}
        self._turns = Counter("turns", "Turns that ended, by outcome.", ["status"], **own)
        self._failures = Counter("failures", "Failed phases.", ["phase", "category", "code"], **own)
        self._http = Counter("http_requests", "Requests answered.", ["route", "status"], **own)
        self._degraded = Counter("degraded", "Answers that are what was left.", ["code"], **own)
        self._retries = Counter(
            "client_retries",
            "A client's same question again after an error, and whether it helped.",
            ["outcome"],
            **own,
        )
        self._phase_s = Histogram(
            "phase_duration_seconds", "Of one run of a phase.", ["phase"], buckets=BUCKETS, **own
        )
        self._turn_s = Histogram(
            "turn_duration_seconds", "Of an answered turn.", buckets=BUCKETS, **own
        )
        Gauge("running_turns", "Turns that run now.", **own).set_function(running)
        Gauge("http_5xx_share", "Share of 5xx since the start.", **own).set_function(self._share)
        Gauge("http_5xx_share_objective", "What it should stay below.", **own).set(SLO_5XX)
        self.registry.register(_Queue(queue_health))
        self.registry.register(_Guarded(guarded))
        self._seen = self._bad = 0
        self._salt = os.urandom(16)
        self._failed: OrderedDict[bytes, float] = OrderedDict()  # question of a client: when

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def observe(self, event: Observed) -> None:
        """An observer of a turn."""
        if isinstance(event, PhaseCompleted | PhaseFailed):
            self._phase_s.labels(event.phase).observe(event.duration_ms / 1000)
        if isinstance(event, PhaseFailed):
            self._failures.labels(event.phase, event.category, event.code or "").inc()
            if event.action != "retry" and event.phase != "save":  # which costs nobody the answer
                self._turns.labels("failed").inc()
        elif isinstance(event, TurnInterrupted):
            self._turns.labels("interrupted").inc()
        elif isinstance(event, TurnCompleted):
            self._turns.labels(event.status).inc()
            self._turn_s.observe(event.duration_ms / 1000)

    def answered(self, facts: Facts) -> None:
        self._http.labels(facts.route, str(facts.status)).inc()
        if facts.degraded:
            self._degraded.labels(facts.code or "").inc()
        status = facts.problem_status or facts.status  # of an error event, too
        if not facts.is_probe:
            self._seen += 1
            self._bad += status >= HTTPStatus.INTERNAL_SERVER_ERROR
        if facts.asked is not None and status != CLIENT_CLOSED:
            self._question(facts.client, facts.asked, status)

    def _question(self, client: str, asked: bytes, status: int) -> None:
        """Whether a client's question is a retry of its own that failed. Its words are not kept:
        only a salted digest, and only until it is answered or forgotten."""
        key = hashlib.blake2b(client.encode() + b"\0" + asked, key=self._salt).digest()
        before = self._failed.pop(key, None)
        if before is not None and monotonic() - before <= RETRY_WINDOW_S:
            self._retries.labels("succeeded" if status < 400 else "failed").inc()
        if status >= 429:
            self._failed[key] = monotonic()
            if len(self._failed) > MOST_WAITING:
                self._failed.popitem(last=False)

    def _share(self) -> float:
        return self._bad / self._seen if self._seen else 0.0


class _Queue(Collector):
    """The interventions, as `interventions health` counts them."""

    def __init__(self, queue_health: Callable[[], Health]) -> None:
        self._health = queue_health

    def describe(self) -> Iterator[Metric]:
        return iter(())  # so that registering it reads nothing

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("unified_flow_queue_up", "1 if the queue can be read.")
        try:
            health = self._health()
        except QueueError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        depth = GaugeMetricFamily(
            "unified_flow_queue_open", "Open interventions.", labels=["severity"]
        )
        for severity, number in health["by_priority"].items():
            depth.add_metric([severity], number)
        yield depth
        admitted = CounterMetricFamily(
            "unified_flow_queue_admissions", "Failures that reached the queue.", labels=["kind"]
        )
        for kind, number in (
            ("accepted", health["accepted"]),
            ("merged", health["merged"]),
            ("counted", health["counted"]),
        ):
            admitted.add_metric([kind], number)
        yield admitted
        dropped = CounterMetricFamily(
            "unified_flow_queue_dropped", "Failures that found no room.", labels=["reason"]
        )
        for reason, number in health["dropped"].items():
            dropped.add_metric([reason], number)
        yield dropped


class _Guarded(Collector):
    """What the guardrails did today, in UTC. Nothing while nobody has rules."""

    def __init__(self, stats: Callable[[], GuardrailStats | None]) -> None:
        self._stats = stats

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("unified_flow_guardrails_up", "1 if the decisions can be read.")
        try:
            stats = self._stats()
        except RetrievalError:
            up.add_metric([], 0)
            yield up
            return
        if stats is None:
            return
        up.add_metric([], 1)
        yield up
        blocks = GaugeMetricFamily(
            "unified_flow_guardrail_blocks_today", "Blocked today, by rule.", labels=["rule"]
        )
        ordered = sorted(stats.blocks, key=lambda blocks: -blocks.count)
        for each in ordered[:MOST_RULES]:
            blocks.add_metric([redact_text(each.rule)], each.count)
        if rest := sum(each.count for each in ordered[MOST_RULES:]):
            blocks.add_metric(["(others)"], rest)
        yield blocks
        for name, help_text, value in (
            (
                "silent_failures_today",
                "Unanswered today because of a failure.",
                stats.silent_failures,
            ),
            ("escalated_today", "Left to a person today.", stats.escalated),
            (
                "retry_rate_today",
                "Share of today's that needed another try.",
                stats.retry_rate or 0,
            ),
        ):
            family = GaugeMetricFamily(f"unified_flow_guardrail_{name}", help_text)
            family.add_metric([], value)
            yield family
