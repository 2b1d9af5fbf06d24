"""Traces as a collector gets them: OTLP over HTTP, decoded with the protocol's own messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from interventions import InterventionQueue
from interventions.times import utc_now
from interventions.view.description import as_markdown
from tests.answers import every_phase_by_model, script
from tests.api.service import model_flags, serving
from tests.servers.model_server import ModelServer, status

pytestmark = every_phase_by_model

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"


class Collector:
    def __init__(self) -> None:
        self.spans: list[Span] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                request = ExportTraceServiceRequest.FromString(body)
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans.extend(scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def settings(self) -> str:
        port = self.server.server_address[1]
        return f'[telemetry]\notlp_endpoint = "http://127.0.0.1:{port}/v1/traces"\n'

    def named(self, name: str) -> Span:
        (span,) = [span for span in self.spans if span.name == name]
        return span


@pytest.fixture
def collector() -> Iterator[Collector]:
    started = Collector()
    yield started
    started.server.shutdown()
    started.server.server_close()


def attributes(span: Span) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_a_turn_is_a_trace_of_its_caller(folder: Path, docs: Path, collector: Collector) -> None:
    with ModelServer(script()) as model:
        flags = model_flags(model.url)
        with serving(folder, *flags, docs=docs, settings=collector.settings) as service:
            headers = {"traceparent": f"00-{TRACE_ID}-{CALLER}-01"}
            assert service.ask(session_id="s1", headers=headers).status_code == 200
        sent = [request.headers["traceparent"] for request in model.requests]
    turn = collector.named("invoke_workflow unified-flow")
    assert (turn.trace_id.hex(), turn.parent_span_id.hex()) == (TRACE_ID, CALLER)
    about = attributes(turn)
    assert about["gen_ai.operation.name"] == "invoke_workflow"
    assert (about["gen_ai.conversation.id"], about["unified_flow.status"]) == ("s1", "answered")
    phases = [span for span in collector.spans if span.name.startswith("phase ")]
    assert len(phases) >= 8
    assert {span.parent_span_id for span in phases} == {turn.span_id}

    synthesis = collector.named("phase synthesis")
    call = next(span for span in collector.spans if span.parent_span_id == synthesis.span_id)
    assert (call.name, call.kind) == ("chat test-model", Span.SPAN_KIND_CLIENT)
    assert attributes(call)["gen_ai.usage.input_tokens"] > 0
    assert synthesis.start_time_unix_nano <= call.start_time_unix_nano
    assert call.end_time_unix_nano <= synthesis.end_time_unix_nano
    assert attributes(collector.named("retrieval documents"))["gen_ai.tool.name"] == "doc.search"

    # The model's server continues the trace, below the phase that asks.
    assert {header.split("-")[1] for header in sent} == {TRACE_ID}
    assert synthesis.span_id.hex() in {header.split("-")[2] for header in sent}
    # No words of the conversation, unless asked for.
    assert "topic" not in str(collector.spans).lower()


def test_no_other_span_is_made(folder: Path, docs: Path, tmp_path: Path) -> None:
    """FastAPI's own would hold the question, where a program of the environment collects them."""
    spans = tmp_path / "spans.txt"
    collected = f"""
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
trace.set_tracer_provider(TracerProvider())
exporter = ConsoleSpanExporter(out=open({str(spans)!r}, "w", 1))
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
"""
    with serving(folder, docs=docs, before=collected) as service:
        assert service.http.get("/query/stream?question=What+is+a+topic").status_code == 200
    assert spans.read_text() == ""


def test_a_failed_span_names_its_intervention_and_that_the_trace(
    folder: Path, docs: Path, collector: Collector
) -> None:
    settings = collector.settings + "content = true\n"
    with ModelServer(script(synthesis=status(500))) as model:
        flags = model_flags(model.url)
        with serving(folder, *flags, docs=docs, settings=settings) as service:
            assert service.ask(session_id="s1").status_code == 502
            (waiting,) = service.triage("GET", "/interventions").json()["interventions"]
    turn, failed = (
        collector.named(name) for name in ("invoke_workflow unified-flow", "phase synthesis")
    )
    trace_id = turn.trace_id.hex()
    assert waiting["context"]["trace_id"] == trace_id
    # What the monitor copies, too.
    entry = InterventionQueue(folder).find(waiting["id"])
    assert f"trace {trace_id}" in as_markdown(entry, [], [], utc_now())
    about = attributes(failed)
    assert about["unified_flow.intervention.id"] == waiting["id"]
    assert about["error.type"] == "HTTPStatusError"
    assert failed.status.code == turn.status.code == 2
    assert "topic" in str(attributes(turn)["gen_ai.input.messages"])


def test_a_collector_that_is_away_costs_no_answer(folder: Path, docs: Path) -> None:
    settings = '[telemetry]\notlp_endpoint = "http://127.0.0.1:9/v1/traces"\n'
    with serving(folder, docs=docs, settings=settings) as service:
        assert service.ask().status_code == 200


def test_opentelemetrys_own_switch_turns_it_off(collector: Collector, folder: Path) -> None:
    off = {"OTEL_SDK_DISABLED": "true"}
    with serving(folder, settings=collector.settings, env=off) as service:
        assert service.ask().status_code == 200
    assert collector.spans == []
