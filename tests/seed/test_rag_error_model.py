"""rag-error-model.md from top to bottom, against a real server: fields, kinds, codes, examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.answers import IN_ENVIRONMENT, script
from tests.api.service import Service, model_flags, serving
from tests.servers.model_server import ModelServer, status
from unified_flow.turns.results import Plan, ToolRequest

DOCUMENT = {
    "ValidationError": {
        "error": True,
        "type": "ValidationError",
        "code": "VALIDATION_ERROR",
        "message": "Frågan får inte vara tom.",
        "request_id": "2025-11-16-req-001",
        "details": {"field": "query"},
    },
    "RetrievalError": {
        "error": True,
        "type": "RetrievalError",
        "code": "RETRIEVAL_ERROR",
        "message": "Kunde inte hämta källor just nu.",
        "request_id": "2025-11-16-req-002",
        "details": {"stage": "retriever", "workspace_id": "default"},
    },
    "LlmError": {
        "error": True,
        "type": "LlmError",
        "code": "LLM_ERROR",
        "message": "Kunde inte generera svar just nu.",
        "request_id": "2025-11-16-req-003",
        "details": {"stage": "llm"},
    },
    "RateLimitError": {
        "error": True,
        "type": "RateLimitError",
        "code": "RATE_LIMITED",
        "message": "För många förfrågningar. Vänta en stund och försök igen.",
        "request_id": "2025-11-16-req-004",
        "details": {"limit": "user_per_minute"},
    },
    "InternalRagError": {
        "error": True,
        "type": "InternalRagError",
        "code": "INTERNAL_ERROR",
        "message": "Ett internt fel uppstod i RAG-motorn.",
        "request_id": "2025-11-16-req-005",
        "details": {"stage": "answer_pipeline"},
    },
    "UnexpectedError": {
        "error": True,
        "type": "UnexpectedError",
        "code": "INTERNAL_ERROR",
        "message": "Ett internt fel uppstod. Försök igen senare.",
        "request_id": "2025-11-16-req-006",
    },
}
STATUS = {
    "ValidationError": 400,
    "RetrievalError": 502,
    "LlmError": 502,
    "RateLimitError": 429,
    "InternalRagError": 500,
    "UnexpectedError": 500,
}


class Place:
    """A served flow over a model server, and the ways to break either."""

    def __init__(self, service: Service, model: ModelServer) -> None:
        self.service = service
        self.model = model
        self.limited_log: list[dict[str, Any]] = []

    def ask(
        self, number: int, question: str = "What is a topic?", **headers: str
    ) -> httpx.Response:
        known = {"X-Request-ID": f"2025-11-16-req-{number:03d}", "Accept-Language": "sv"}
        return self.service.ask(question, headers=known | headers)

    def provoke(self, kind: str) -> httpx.Response:
        index = self.service.home / "shared_state/index/documents.sqlite3"
        self.model.script = script()
        if kind == "ValidationError":
            return self.ask(1, " ")
        if kind == "RetrievalError":
            index.rename(index.with_suffix(".away"))
            answer = self.ask(2)
            index.with_suffix(".away").rename(index)
            return answer
        if kind == "LlmError":
            self.model.script = script(synthesis=status(500))
            return self.ask(3)
        if kind == "InternalRagError":  # a recipe of one's own that has no head: a config_error
            recipe = self.service.home / "recipes" / "reflection.md"
            recipe.parent.mkdir()
            recipe.write_text("nothing")
            answer = self.ask(5)
            recipe.unlink()
            recipe.parent.rmdir()
            return answer
        if kind == "UnexpectedError":  # a tool that raises what nobody foresaw
            request = ToolRequest(tool="test.broken")
            plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[request])
            self.model.script = script(planner=plan)
            return self.ask(6)
        with serving(  # the limit of a service itself
            self.service.home.parent / "limited",
            docs=self.service.home.parent / "docs",
            settings='[serve]\nrate_limit = "1/minute"\n',
        ) as limited:
            first, second = Place(limited, self.model).ask(1), Place(limited, self.model).ask(4)
            assert first.status_code == 200
            self.limited_log = limited.log
            return second


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("errors")
    (folder / "docs").mkdir()
    (folder / "docs" / "robots.md").write_text("# Topics\n\nA topic is a named bus.\n")
    (folder / "broken.py").write_text(
        "from unified_flow.tools.functions import tool\n\n\n"
        "@tool(name='test.broken', access='reads')\n"
        "def broken() -> str:\n"
        '    """Break."""\n'
        "    raise RuntimeError('secret detail of /srv/app')\n"
    )
    with (
        ModelServer(script()) as model,
        serving(
            folder / "home",
            *model_flags(model.url),
            "--tools",
            str(folder / "broken.py"),
            env=IN_ENVIRONMENT,
            docs=folder / "docs",
            settings='[serve]\nrate_limit = "off"\n',
        ) as service,
    ):
        assert service.ask().status_code == 200, "and the documents are indexed"
        yield Place(service, model)


@pytest.mark.parametrize("kind", DOCUMENT)
def test_the_example_comes_out_field_for_field(kind: str, place: Place) -> None:
    answer = place.provoke(kind)
    assert answer.json() == DOCUMENT[kind]
    assert list(answer.json()) == list(DOCUMENT[kind]), "in the document's order, too"
    assert answer.status_code == STATUS[kind]
    assert answer.headers["X-Request-ID"] == DOCUMENT[kind]["request_id"]
    line = (place.limited_log if kind == "RateLimitError" else place.service.log)[-1]
    assert line["request_id"] == DOCUMENT[kind]["request_id"]
    assert (line["type"], line["code"]) == (kind, DOCUMENT[kind]["code"])


FIELDS = {"error": bool, "type": str, "code": str, "message": str, "request_id": str}


@pytest.mark.parametrize("liked", ["", "de", "en-GB,sv;q=0.5", "sv;q=0", "%%%"])
def test_english_is_the_default(liked: str, place: Place) -> None:
    answer = place.ask(7, " ", **{"Accept-Language": liked})
    assert answer.json()["message"] == "The question must not be empty."


def test_the_fields_and_their_types(place: Place) -> None:
    body = place.provoke("LlmError").json()
    assert {name: type(body[name]) for name in FIELDS} == FIELDS
    assert isinstance(body["details"], dict)


def test_a_request_id_is_made_where_none_is_sent_or_it_is_not_well_formed(place: Place) -> None:
    for given in ("", "a b", "x" * 101, "../../etc/passwd", "<script>"):
        answer = place.ask(1, " ", **{"X-Request-ID": given})
        made = answer.json()["request_id"]
        assert made != given
        assert answer.headers["X-Request-ID"] == made


def test_nothing_of_the_failure_reaches_the_client(place: Place) -> None:
    """No trace, path, address or class of the program; the log has what explains it."""
    for kind in ("RetrievalError", "LlmError", "InternalRagError", "UnexpectedError"):
        text = place.provoke(kind).text
        for leak in ("Traceback", str(place.service.home), place.model.url, "sqlite", "httpx"):
            assert leak not in text, kind


def test_from_the_request_id_to_the_log(place: Place) -> None:
    """The document's three steps: take the id from the client, find it, read code and type."""
    request_id = place.provoke("LlmError").json()["request_id"]
    line = [each for each in place.service.log if each["request_id"] == request_id][-1]
    assert (line["code"], line["type"]) == ("LLM_ERROR", "LlmError")
    assert line["http"]["status"] == 502
    assert line["intervention_id"]
    assert [phase["status"] for phase in line["phases"]][-1] == "failed"
    assert "topic" not in str(line).lower(), "and nothing that was said"


ADVICE = {
    # code: (near the field?, marked?, retry?, wait and no sending?, shown as)
    "VALIDATION_ERROR": (True, True, False, False, "near_field"),
    "RETRIEVAL_ERROR": (True, False, True, False, "neutral"),
    "LLM_ERROR": (True, False, True, False, "neutral"),
    "RATE_LIMITED": (True, False, True, True, "wait"),
    "INTERNAL_ERROR": (True, False, False, False, "general"),
}


def test_the_recommended_behaviour_for_programs(place: Place) -> None:
    told = {each["code"]: each for each in place.service.http.get("/errors").json()["errors"]}
    assert {
        code: (
            each["show_to_user"],
            each["highlight_field"],
            each["retry"],
            each["disable_send"],
            each["show"],
        )
        for code, each in told.items()
    } == ADVICE
    assert told["RETRIEVAL_ERROR"]["message"]["sv"] == (
        "Vi kunde inte hämta underlaget just nu. Prova igen om en stund."
    )
    assert told["LLM_ERROR"]["message"]["sv"] == (
        "Vi kunde inte generera ett svar just nu. Prova igen."
    )
    assert told["LLM_ERROR"]["hint_when_frequent"]
    assert told["INTERNAL_ERROR"]["types"] == ["InternalRagError", "UnexpectedError"]


def test_openapi_shows_the_six_examples(place: Place) -> None:
    responses = place.service.http.get("/openapi.json").json()["paths"]["/query"]["post"]
    shown = {}
    for response in responses["responses"].values():
        for content in response.get("content", {}).values():
            shown |= {name: each["value"] for name, each in content.get("examples", {}).items()}
    assert shown == DOCUMENT
