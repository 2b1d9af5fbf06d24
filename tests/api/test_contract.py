"""The service against its own description: nothing answers what the OpenAPI does not say."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings

from tests.api.service import TRIAGE, Service

EXAMPLES = 400 if os.environ.get("SOAK") else 12


def test_nothing_fails_that_is_not_described(service: Service) -> None:
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    described = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
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
        def answers_as_described(case: schemathesis.Case) -> None:
            headers = {"Authorization": f"Bearer {TRIAGE}"}
            case.call_and_validate(headers=headers, checks=described)

        answers_as_described()
    assert {"POST /query", "POST /v1/chat/completions", "GET /ready"} <= operations
