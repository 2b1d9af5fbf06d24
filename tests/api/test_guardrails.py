"""A conversation over HTTP in which some things are not said; the rules and decisions behind it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.answers import COMPLETE, DRAFT, every_phase_by_model, open_entries, script
from tests.api.service import Service, model_flags, serving
from tests.servers.model_server import ModelServer, refused_url
from tests.servers.moderation_server import ModerationServer

REPLY = "named bus"  # in the reply, and in no question


@pytest.fixture
def model() -> Iterator[ModelServer]:
    answers = script(planner=[COMPLETE] * 20)
    with ModelServer(answers) as server:
        yield server


@pytest.fixture
def moderation() -> Iterator[ModerationServer]:
    with ModerationServer({"insult": {"harassment": 0.91}}) as server:
        yield server


def settings_for(moderation: ModerationServer, policy: str = "silent", **more: Any) -> str:
    own = "".join(f'{name} = "{value}"\n' for name, value in more.items())
    return (
        f'policy = "{policy}"\n[serve]\nrate_limit = "off"\n'
        f'[guardrails]\nmoderation_url = "{moderation.url}"\n{own}'
    )


def said(reply: httpx.Response) -> tuple[int, bool, str]:
    body = reply.json()
    return reply.status_code, body["should_respond"], body["answer"]


def rules(service: Service, user: str, **columns: Any) -> None:
    assert service.triage("PUT", f"/rules/{user}", json=columns).status_code == 200


def questions(model: ModelServer) -> int:
    return len(model.requests)


@every_phase_by_model
def test_a_conversation_with_silences_and_a_restart_in_its_middle(
    folder: Path, docs: Path, model: ModelServer, moderation: ModerationServer
) -> None:
    settings, flags = settings_for(moderation), model_flags(model.url)
    with serving(folder, *flags, docs=docs, settings=settings) as service:
        rules(service, "ada", flagged_keywords=["spam"])
        ada = {"session_id": "s1", "user_id": "ada", "channel": "chat"}
        assert said(service.ask("What is a topic?", **ada)) == (200, True, DRAFT.response)

        before = questions(model)
        blocked = service.ask("Want some s p a m?", **ada)
        assert said(blocked) == (200, False, "")
        assert "spam" not in blocked.text
        assert questions(model) == before
        assert said(service.ask("Want some spam?", **ada | {"user_id": "bob"}))[1]

        moderation.flags[REPLY] = {"hate": 0.8}
        silent = service.ask("And what is a service?", **ada)
        assert said(silent) == (200, False, "")
        assert "hate" not in silent.text
        assert DRAFT.response not in silent.text
        del moderation.flags[REPLY]
    with serving(folder, *flags, docs=docs, settings=settings) as service:
        assert said(service.ask("And now?", **ada)) == (200, True, DRAFT.response)
        text = model.requests[-1].text + "".join(r.text for r in model.requests[-5:])
        assert "What is a topic?" in text
        assert "And what is a service?" not in text
        assert "s p a m" not in text

        moderation.answer = (500, b"{}")
        assert said(service.ask("Still there?", **ada)) == (200, False, "")
        moderation.answer = None

        found = service.triage("GET", "/decisions?user_id=ada").json()["decisions"]
        assert [(d["decision"], d["matched_rule"]) for d in found] == [
            ("ignore", "moderation_failed"),
            ("respond", None),
            ("ignore", "openai_moderation"),
            ("ignore", "flagged_keyword:spam"),
            ("respond", None),
        ]
        stats = service.triage("GET", "/guardrails/stats").json()
        assert (stats["blocked"], stats["silent_failures"]) == (2, 1)  # moderation was down
        scraped = service.triage("GET", "/metrics").text
        line = 'unified_flow_guardrail_blocks_today{rule="flagged_keyword:spam"} 1.0'
        assert line in scraped.splitlines()


def test_a_stream_of_a_silenced_turn_has_no_text(
    folder: Path, docs: Path, model: ModelServer, moderation: ModerationServer
) -> None:
    moderation.flags[REPLY] = {"hate": 0.8}
    with serving(
        folder, *model_flags(model.url), docs=docs, settings=settings_for(moderation)
    ) as service:
        reply = service.ask("What is a topic?", stream=True, session_id="s1", trace=True)
        assert "event: text" not in reply.text
        assert DRAFT.response not in reply.text
        assert '"should_respond": false' in reply.text


def test_silences_cannot_be_told_apart(
    folder: Path, docs: Path, model: ModelServer, moderation: ModerationServer
) -> None:
    """A message that was blocked, a reply that was, a model that failed: one shape for all."""
    from tests.servers.model_server import status

    moderation.flags[REPLY] = {"hate": 0.8}
    streams, completions = [], []
    with serving(
        folder, *model_flags(model.url), docs=docs, settings=settings_for(moderation)
    ) as service:

        def ask(question: str) -> None:
            stream = service.ask(question, stream=True, session_id="s1").text
            streams.append(_without_ids(stream))
            messages = [{"role": "user", "content": question}]
            completion = service.http.post("/v1/chat/completions", json={"messages": messages})
            completions.append(_without_ids(completion.text))

        ask("You insult.")
        ask("What is a topic?")
        model.script = {"query_analyzer": status(401)}
        ask("What is a topic?")
    assert '"should_respond": false' in streams[0]
    assert "event: phase" not in "".join(streams)
    assert len(set(streams)) == 1
    assert len(set(completions)) == 1


def test_what_is_silenced_is_in_the_log_of_the_service(
    folder: Path, docs: Path, model: ModelServer, moderation: ModerationServer
) -> None:
    from tests.servers.model_server import status

    model.script = {"query_analyzer": status(401)}
    settings = settings_for(moderation)
    with serving(folder, *model_flags(model.url), docs=docs, settings=settings) as service:
        service.ask("You insult.", user_id="ada")
        service.ask("What is a topic?", user_id="ada")
    file = folder / "logs" / "flow.log"
    lines = file.read_text().splitlines()
    info, error = "INFO unified_flow.guardrails ", "ERROR unified_flow.guardrails "
    assert f"{info}[SILENT FAILURE] Pre-guardrail blocked message for user ada" in lines[1]
    assert any(f"{error}[SILENT FAILURE] LLM error for user ada: " in line for line in lines)
    assert file.stat().st_mode & 0o777 == 0o600


def _without_ids(text: str) -> str:
    own = r'"(request_id|turn_id|id|created)": ?("[^"]*"|[0-9]+)'
    return re.sub(own, "", text)


def test_a_blocked_message_is_no_history_of_a_chat(
    folder: Path, docs: Path, model: ModelServer, moderation: ModerationServer
) -> None:
    """As an ordinary front end does: all that was said goes with the next message."""
    said = [
        {"role": "user", "content": "A vile insult"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "What is a topic?"},
    ]
    settings = settings_for(moderation)
    with serving(folder, *model_flags(model.url), docs=docs, settings=settings) as service:
        reply = service.http.post("/v1/chat/completions", json={"messages": said}).json()
    assert reply["choices"][0]["message"]["content"] == DRAFT.response
    assert "insult" not in "".join(request.text for request in model.requests)


@pytest.mark.parametrize("policy", ["fail_fast", "graceful"])
def test_a_block_holds_under_every_policy(
    folder: Path, docs: Path, model: ModelServer, moderation: ModerationServer, policy: str
) -> None:
    settings = settings_for(moderation, policy)
    with serving(folder, *model_flags(model.url), docs=docs, settings=settings) as service:
        assert said(service.ask("You insult.", session_id="s1")) == (200, False, "")
        assert model.requests == []


@every_phase_by_model
def test_a_model_that_is_away_is_not_spoken_of(
    folder: Path, docs: Path, moderation: ModerationServer
) -> None:
    """A wrong address is not waited for here: a 401 is final (the waits: tests/integration)."""
    from tests.servers.model_server import status

    with ModelServer({"query_analyzer": status(401)}) as model:
        settings = settings_for(moderation)
        with serving(folder, *model_flags(model.url), docs=docs, settings=settings) as service:
            reply = service.ask("What is a topic?", session_id="s1")
            assert said(reply) == (200, False, "")
            text = _without_ids(reply.text)  # chance writes 401 too
            assert not any(word in text for word in ("401", "LLM", "error"))
            # The calling program has to correct a bad question, under every policy.
            refused = service.ask("long " * 500, session_id="s1")
            assert (refused.status_code, refused.json()["code"]) == (400, "VALIDATION_ERROR")
        assert len(model.requests) == 1
    [entry] = open_entries(folder)
    assert entry["error_type"] == "HTTPStatusError"


def test_rules_need_the_token_and_are_checked(
    folder: Path, docs: Path, moderation: ModerationServer
) -> None:
    with serving(folder, docs=docs, settings=settings_for(moderation)) as service:
        for path in ("/rules", "/rules/ada", "/decisions", "/guardrails/stats"):
            assert service.http.get(path).status_code == 401
        assert service.http.put("/rules/ada", json={}).status_code == 401
        assert service.triage("GET", "/rules").json() == {"rules": []}
        assert service.triage("GET", "/rules/ada").status_code == 404
        refused = service.triage("PUT", "/rules/ada", json={"flagged_keywords": ["a"]})
        assert refused.status_code == 400
        assert service.triage("PUT", "/rules/ada", json={"keywords": []}).status_code == 422
        rules(service, "ada", flagged_phrases=["buy  now"], ai_enabled_for_comments=False)
        assert service.triage("GET", "/rules/%20ada").json()["flagged_phrases"] == ["buy now"]
        assert service.triage("GET", "/rules/a%0Ab").status_code == 400
        for off in ({"question": "BUY, NOW"}, {"question": "hi", "channel": "comment"}):
            silent = service.http.post("/query", json=off | {"user_id": "ada"}).json()
            assert not silent["should_respond"]
        elsewhere = service.ask("hi", user_id="ada", channel="dm")
        assert (elsewhere.status_code, elsewhere.json()["details"]["field"]) == (400, "channel")
        rules(service, "ada", ai_enabled_for_chats=False)
        body = {"messages": [{"role": "user", "content": "hi"}], "user": "ada"}
        answer = service.http.post("/v1/chat/completions", json=body).json()
        assert not answer["unified_flow"]["should_respond"]
        assert service.triage("DELETE", "/rules/ada").status_code == 200
        assert service.triage("DELETE", "/rules/ada").status_code == 404


def test_rules_of_a_running_service_are_written_in_sql(folder: Path, docs: Path) -> None:
    settings = "[guardrails]\ncheck_replies = true\n"
    ada = {"user_id": "ada", "session_id": "s1"}
    with serving(folder, docs=docs, settings=settings) as service:
        rules(service, "ada", flagged_keywords=["spam"])
        assert said(service.ask("What is a topic?", **ada))[1]
        with closing(sqlite3.connect(folder / "shared_state" / "guardrails.sqlite3")) as database:
            database.execute("""UPDATE ai_rules SET flagged_phrases = '["a topic"]'""")
            database.commit()
        assert said(service.ask("What is a topic?", **ada)) == (200, False, "")
        assert said(service.ask("What is spam?", **ada)) == (200, False, "")


def test_in_shadow_mode_moderation_that_is_away_silences_nobody(
    folder: Path, docs: Path, moderation: ModerationServer
) -> None:
    moderation.close()
    settings = settings_for(moderation, policy="graceful") + "shadow = true\n"
    with serving(folder, docs=docs, settings=settings) as service:
        assert service.http.get("/ready").json()["checks"]["guardrails"] == "ok"
        assert said(service.ask("What is a topic?", session_id="s1"))[1]
        assert service.triage("GET", "/guardrails/stats").json()["shadowed"] == 2


def test_a_database_that_is_away_is_unavailable_and_silences(
    folder: Path, docs: Path, moderation: ModerationServer
) -> None:
    settings = settings_for(moderation, database_url_env="RULES_URL")
    url = refused_url().replace("http://", "postgresql://ada:hunter2@").removesuffix("/v1") + "/x"
    with serving(folder, docs=docs, settings=settings, env={"RULES_URL": url}) as service:
        away = service.triage("GET", "/rules")
        assert away.status_code == 503
        answer = service.ask("What is a topic?", session_id="s1")
        assert said(answer) == (200, False, "")
        assert "hunter2" not in away.text + answer.text
    written = "".join(
        path.read_text(errors="replace")
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in (".json", ".jsonl", ".txt", ".md")
    )
    assert "hunter2" not in written
