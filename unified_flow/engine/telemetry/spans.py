"""Turns as OpenTelemetry traces, by its conventions for generative AI (extra: otel).

A turn is a span `invoke_workflow`, each run of a phase a span in it, and in that each model call
(`chat`), each tool (`execute_tool`) and each search (`retrieval`). They are made of the journal's
events, so that a trace says what the journal says; words of the conversation only if asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from interventions.secrets.redaction import redact, redact_text
from unified_flow.config.tool_names import DOC_SEARCH
from unified_flow.lib.trace_context import HEADER, traceparent
from unified_flow.turns import events
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.turn import Turn

OURS = "unified_flow"
TIMEOUT_S = 3.0  # for one batch, its retries included: what the end may wait for
_PROPAGATOR = TraceContextTextMapPropagator()


class Traces:
    """`endpoint` is a collector's, such as http://localhost:4318/v1/traces. Spans are sent in the
    background; what no collector takes is dropped, and logged by OpenTelemetry."""

    def __init__(self, endpoint: str, *, content: bool) -> None:
        resource = Resource.create(
            {"service.name": "unified-flow", "service.version": version("unified-flow")}
        )
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=TIMEOUT_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(OURS)
        self._content = content

    @contextmanager
    def of(self, ledger: Ledger) -> Iterator[None]:
        """A span for the turn that runs meanwhile, in the trace of whoever asked."""
        spans = _TurnSpans(self._tracer, ledger.turn, content=self._content)
        ledger.observers.append(spans.observe)
        before = traceparent.set(spans.traceparent)
        try:
            yield
        except BaseException as exc:
            spans.end(ledger.turn, exc)
            raise
        else:
            spans.end(ledger.turn)
        finally:
            traceparent.reset(before)

    def close(self) -> None:
        """Send what is left. The provider itself ends with the process."""
        self._provider.force_flush()


class _TurnSpans:
    def __init__(self, tracer: Tracer, turn: Turn, *, content: bool) -> None:
        self._tracer = tracer
        self._content = content
        about: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": "unified-flow",
            "gen_ai.conversation.id": turn.session_id,
            f"{OURS}.turn.id": turn.turn_id,
            f"{OURS}.request.id": turn.request_id,
            f"{OURS}.policy": turn.policy,
        }
        if content:
            about["gen_ai.input.messages"] = _message("user", turn.question)
        caller = traceparent.get()
        parent = _PROPAGATOR.extract({HEADER: caller}) if caller else None
        self._turn = tracer.start_span(
            "invoke_workflow unified-flow", parent, kind=SpanKind.INTERNAL, attributes=about
        )
        self._phase: Span | None = None
        self._tools: dict[int, Span] = {}

    @property
    def traceparent(self) -> str | None:
        """None where OTEL_SDK_DISABLED turns OpenTelemetry off."""
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(self._phase or self._turn))
        return carrier.get(HEADER)

    def observe(self, event: events.Observed) -> None:
        match event:
            case events.PhaseStarted():
                about = {f"{OURS}.phase": event.phase, f"{OURS}.visit": event.visit}
                self._phase = self._begin(
                    f"phase {event.phase}", event.at, about | {f"{OURS}.attempt": event.attempt}
                )
                traceparent.set(self.traceparent)
            case events.ModelCalled():
                about = _of_model(event.model)
                if event.prompt_tokens is not None:
                    about["gen_ai.usage.input_tokens"] = event.prompt_tokens
                if event.completion_tokens is not None:
                    about["gen_ai.usage.output_tokens"] = event.completion_tokens
                if self._content:
                    about["gen_ai.output.messages"] = _message("assistant", event.reply)
                self._call(event, about).end(_ns(event.at))
            case events.ModelFailed():
                _fail(self._call(event, _of_model(event.model)), event.error_type, event.at)
            case events.ToolStarted():
                self._tools[event.call] = self._tool(event)
            case events.ToolCompleted() if event.call in self._tools:
                self._tools.pop(event.call).end(_ns(event.at))
            case events.PhaseCompleted() if self._phase is not None:
                self._phase.end(_ns(event.at))
                self._phase = None
            case events.PhaseFailed() if self._phase is not None:
                self._failed(event, self._phase)

    def end(self, turn: Turn, error: BaseException | None = None) -> None:
        """A turn that failed, or was stopped, is an error of its own kind."""
        for span in (*self._tools.values(), self._phase):
            if span is not None:
                span.end()
        self._turn.set_attribute(f"{OURS}.status", turn.status)
        if error is not None:
            failure = turn.failure
            kind = failure.error_type if failure is not None else type(error).__name__
            _mark(self._turn, kind)
        self._turn.end()

    def _failed(self, event: events.PhaseFailed, phase: Span) -> None:
        while self._tools:
            _fail(self._tools.popitem()[1], event.error_type, event.at)
        if event.intervention_id is not None:
            phase.set_attribute(f"{OURS}.intervention.id", event.intervention_id)
        phase.set_attribute(f"{OURS}.error.category", event.category)
        message = event.error_message if self._content else None
        _fail(phase, event.error_type, event.at, message)
        self._phase = None

    def _call(self, event: events.ModelCalled | events.ModelFailed, about: dict[str, Any]) -> Span:
        began = event.at - timedelta(milliseconds=event.duration_ms)
        return self._begin(f"chat {event.model}", began, about, SpanKind.CLIENT)

    def _tool(self, event: events.ToolStarted) -> Span:
        searches = event.tool == DOC_SEARCH
        about: dict[str, Any] = {
            "gen_ai.operation.name": "retrieval" if searches else "execute_tool",
            "gen_ai.tool.name": event.tool,
            "gen_ai.tool.call.id": str(event.call),
        }
        if self._content:
            about["gen_ai.tool.call.arguments"] = json.dumps(redact(event.args))
        kind = "retrieval documents" if searches else f"execute_tool {event.tool}"
        return self._begin(kind, event.at, about)

    def _begin(
        self,
        name: str,
        at: datetime,
        about: Mapping[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        parent = trace.set_span_in_context(self._phase or self._turn)
        return self._tracer.start_span(
            name, parent, kind=kind, attributes=dict(about), start_time=_ns(at)
        )


def _of_model(name: str) -> dict[str, Any]:
    # Every server that is asked speaks OpenAI's protocol, whoever made the model.
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": name,
    }


def _message(role: str, said: Any) -> str:
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
    part = {"type": "text", "content": redact_text(text)}
    return json.dumps([{"role": role, "parts": [part]}], ensure_ascii=False)


def _fail(span: Span, error_type: str, at: datetime, message: str | None = None) -> None:
    _mark(span, error_type, message)
    span.end(_ns(at))


def _mark(span: Span, error_type: str, message: str | None = None) -> None:
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR, message))


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000_000)
