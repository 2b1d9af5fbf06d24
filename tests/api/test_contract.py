"""The service against its own description: nothing answers what the OpenAPI does not say."""

from __future__ import annotations

import os

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.service import TRIAGE, Service

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 400 if os.environ.get("SOAK") else 12


def test_nothing_fails_that_is_not_described(service: Service) -> None:
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    operations = set[str]()
    for found in schema.get_all_operations():
        operation = found.ok()
        operations.add(operation.label)

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def answers_as_described(case: Case) -> None:
            case.call_and_validate(headers={"Authorization": f"Bearer {TRIAGE}"}, checks=CHECKS)

        answers_as_described()
    assert {"POST /query", "POST /v1/chat/completions", "GET /ready"} <= operations
