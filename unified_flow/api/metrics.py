"""What Prometheus reads: turns and requests as they happen, queue and guardrails on a scrape."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from time import monotonic
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from interventions.errors import QueueError
from interventions.health import Health
from interventions.secrets.redaction import redact_text
from unified_flow.api.access import Buckets, Rate
from unified_flow.api.http_exchange import HttpExchange
from unified_flow.api.problems import CLIENT_CLOSED
from unified_flow.api.running_turns import RunningTurns
from unified_flow.api.upkeep import Alarms
from unified_flow.engine.services import Services
from unified_flow.errors import RetrievalError
from unified_flow.guardrails.decisions import GuardrailStats
from unified_flow.turns.events import Observed

RETRY_WINDOW_S = 300.0
MAX_FAILED = 10_000
MAX_RULES = 100
# Lines of requests refused with one status, in the query log: at once, and evenly over an hour.
REFUSALS_LOGGED = Rate(1000, "hour")
BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 3, 5, 10, 30, 60)


class Metrics(Collector):
    def __init__(self, services: Services, running: RunningTurns, alarms: Alarms) -> None:
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry, "namespace": "unified_flow"}
        turns = Counter("turns", "Turns that ended, by outcome.", ["status"], **own)
        self._failures = Counter("failures", "Failed phases.", ["phase", "category", "code"], **own)
        http = Counter("http_requests", "Requests answered.", ["route", "status"], **own)
        self._degraded = Counter("degraded", "Answers that are what was left.", ["code"], **own)
        self._retries = Counter(
            "client_retries",
            "A client's same question again after an error, and whether it helped.",
            ["outcome"],
            **own,
        )
        phase_s = Histogram(
            "phase_duration_seconds", "Of one run of a phase.", ["phase"], buckets=BUCKETS, **own
        )
        # Looking up a label's child costs more than counting.
        self._turns_of, self._requests_of = cache(turns.labels), cache(http.labels)
        self._phase_s = cache(phase_s.labels)
        self._turn_s = Histogram(
            "turn_duration_seconds", "Of an answered turn.", buckets=BUCKETS, **own
        )
        self._unavailable = Counter("unavailable", "Requests that got 503.", ["reason"], **own)
        self.unlogged = Counter("unlogged_refusals", "Refused without a line in the log.", **own)
        self.refusals = Buckets(REFUSALS_LOGGED)
        Gauge("running_turns", "Turns that run now.", **own).set_function(lambda: len(running))
        Gauge("turns_limit", "Turns that may run at once.", **own).set(running.limit)
        self._services = services
        self._alarms = alarms
        self.registry.register(self)
        self._salt = os.urandom(16)
        self._failed: OrderedDict[bytes, float] = OrderedDict()  # a client's question: when

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def observe(self, event: Observed) -> None:
        """An observer of a turn."""
        # By name: to tell that a model is none of a class takes pydantic a while.
        if event.event == "phase_completed" or event.event == "phase_failed":
            self._phase_s(event.phase).observe(event.duration_ms / 1000)
        if event.event == "phase_failed":
            self._failures.labels(event.phase, event.category, event.code or "").inc()
            if event.action != "retry" and event.phase != "save":  # which costs nobody the answer
                self._turns_of("failed").inc()
        elif event.event == "turn_interrupted":
            self._turns_of("interrupted").inc()
        elif event.event == "turn_completed":
            self._turns_of(event.status).inc()
            self._turn_s.observe(event.duration_ms / 1000)

    def count(self, exchange: HttpExchange) -> None:
        problem = exchange.problem
        self._requests_of(exchange.route, str(exchange.status)).inc()
        if problem is not None and problem.reason is not None:
            self._unavailable.labels(problem.reason).inc()
        if exchange.degraded:
            self._degraded.labels(problem.code if problem else "").inc()
        status = problem.status if problem else exchange.status  # an error event has its own
        if exchange.question_body is not None and status != CLIENT_CLOSED:
            self._count_retry(exchange.client, exchange.question_body, status)

    def _count_retry(self, client: str, question: bytes, status: int) -> None:
        """Whether a question repeats a failed one of its client. A salted digest stands for it,
        until it is answered or forgotten."""
        key = hashlib.blake2b(client.encode() + b"\0" + question, key=self._salt).digest()
        failed_at = self._failed.pop(key, None)
        if failed_at is not None and monotonic() - failed_at <= RETRY_WINDOW_S:
            self._retries.labels("succeeded" if status < 400 else "failed").inc()
        if status >= 429:
            self._failed[key] = monotonic()
            if len(self._failed) > MAX_FAILED:
                self._failed.popitem(last=False)

    def collect(self) -> Iterator[Metric]:
        """What is read when somebody scrapes: the queue, and the guardrails' day in UTC."""
        lost = "What could not be written or queued at once."
        yield _labelled(CounterMetricFamily, "alarms", lost, "source", dict(self._alarms.counts))
        found: list[Metric] = []
        with suppress(QueueError):
            found = [*_queue(self._services.queue.health())]
        yield _gauge("queue_up", "1 if the queue can be read.", bool(found))
        yield from found
        found = []
        with suppress(RetrievalError):
            if (stats := self._services.guardrails.stats_of_today()) is None:
                return  # nobody has rules
            found = [*_guardrails(stats)]
        yield _gauge("guardrails_up", "1 if the decisions can be read.", bool(found))
        yield from found


def _queue(health: Health) -> Iterator[Metric]:
    waiting = "Open interventions."
    yield _labelled(GaugeMetricFamily, "queue_open", waiting, "severity", health["by_priority"])
    reached = "Failures that reached the queue."
    kinds = {"accepted": health["accepted"], "merged": health["merged"]}
    kinds["counted"] = health["counted"]
    yield _labelled(CounterMetricFamily, "queue_admissions", reached, "kind", kinds)
    lost = "Failures that found no room."
    yield _labelled(CounterMetricFamily, "queue_dropped", lost, "reason", health["dropped"])


def _guardrails(stats: GuardrailStats) -> Iterator[Metric]:
    blocks: dict[str, int] = {}
    for place, each in enumerate(sorted(stats.blocks, key=lambda blocks: -blocks.count)):
        rule = redact_text(each.rule) if place < MAX_RULES else "(others)"
        blocks[rule] = blocks.get(rule, 0) + each.count
    by_rule = "Blocked today, by rule."
    yield _labelled(GaugeMetricFamily, "guardrail_blocks_today", by_rule, "rule", blocks)
    silent = "Unanswered today because of a failure."
    yield _gauge("guardrail_silent_failures_today", silent, stats.silent_failures)
    yield _gauge("guardrail_escalated_today", "Left to a person today.", stats.escalated)
    again = "Share of today's that needed another try."
    yield _gauge("guardrail_retry_rate_today", again, stats.retry_rate or 0)


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"unified_flow_{name}", help_text, value=value)


def _labelled(
    kind: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    help_text: str,
    label: str,
    values: Mapping[str, float],
) -> Metric:
    family = kind(f"unified_flow_{name}", help_text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
