"""`unified-flow rules`, `decisions` and `guardrails`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests import forked
from tests.answers import open_entries
from tests.servers.model_server import ModelServer
from tests.servers.moderation_server import ModerationServer
from unified_flow.cli.app import app
from unified_flow.config.tables import GuardrailSettings
from unified_flow.guardrails.decisions import RecordedDecision
from unified_flow.guardrails.guardrails import open_store

runner = CliRunner()


def run(home: Path, *args: str, code: int = 0) -> Result:
    outcome = runner.invoke(app, [*args, "--home", str(home)])
    assert outcome.exit_code == code, outcome.output
    return outcome


def told(home: Path, *args: str, code: int = 0) -> Any:
    return json.loads(run(home, *args, "--json", code=code).stdout)


def test_rules_are_added_listed_tried_and_removed(home: Path) -> None:
    assert "no rules yet" in run(home, "rules", "list").stderr
    run(home, "rules", "add", "spam", "buy  now", "--user", "ada")
    run(home, "rules", "add", "lawyer", "--escalate", "--user", "ada")
    listed = run(home, "rules", "list").stdout
    assert listed.splitlines() == [
        "ada: answers everywhere",
        "  keyword   spam",
        "  phrase    buy now",
        "  keyword   lawyer  (goes to a person)",
    ]
    run(home, "rules", "delete", "buy now", "--user", "ada")
    assert told(home, "rules", "list")["rules"][0]["flagged_phrases"] == []
    gone = run(home, "rules", "delete", "buy now", "--user", "ada", code=3)
    assert "hint" in gone.stderr


@pytest.mark.parametrize(
    ("text", "decision", "rule"),
    [
        ("s p a m!", "block", "flagged_keyword:spam"),
        ("spamalot", "pass", None),
        ("my lawyer will write", "escalate", "escalate_keyword:lawyer"),
        ("spam for my lawyer", "block", "flagged_keyword:spam"),
    ],
)
def test_a_message_is_tried(home: Path, text: str, decision: str, rule: str | None) -> None:
    run(home, "rules", "add", "spam")
    run(home, "rules", "add", "lawyer", "--escalate")
    found = told(home, "rules", "test", text, code=0 if decision == "pass" else 1)
    assert (found["decision"], found["matched_rule"]) == (decision, rule)
    assert run(home, "rules", "test", text, "--user", "bob").stdout == "pass\n"


def test_where_anything_is_answered(home: Path) -> None:
    assert not told(home, "rules", "set", "--no-comments")["ai_enabled_for_comments"]
    off = run(home, "rules", "test", "hello", "--channel", "comment", code=1)
    assert off.stdout == "block: AI is off for comments\n"
    run(home, "rules", "test", "hello", "--channel", "chat")
    assert "chatt" in run(home, "rules", "test", "hello", "--channel", "chatt", code=2).stderr
    run(home, "rules", "set", "--off")
    assert "answers nowhere" in run(home, "rules", "list").stdout
    run(home, "rules", "test", "hello", code=1)


def test_rules_that_read_the_same_are_one(home: Path) -> None:
    run(home, "rules", "add", "spam", "SPAM", "buy now")
    added = told(home, "rules", "add", "ｓｐａｍ", "Buy, now", "scam", "--user", " default ")
    assert (added["flagged_keywords"], added["flagged_phrases"]) == (["spam", "scam"], ["buy now"])
    run(home, "rules", "delete", "SPAM", "BUY  NOW")
    assert told(home, "rules", "list")["rules"][0]["flagged_keywords"] == ["scam"]
    assert "error" in run(home, "rules", "add", "spam", "--user", "a\nb", code=2).stderr


def test_a_rule_finds_inflections_and_what_stands_for_its_star(home: Path) -> None:
    run(home, "rules", "add", "spam", "viagr*", "buy now")
    for message in ("no spams", "VIAGRA!"):
        run(home, "rules", "test", message, code=1)
    run(home, "rules", "test", "buy nows and antispam")


@pytest.mark.parametrize("rule", ["a", "sp*m", "ab*", "spam|scam"])
def test_what_cannot_be_a_rule_is_refused(home: Path, rule: str) -> None:
    assert "error" in run(home, "rules", "add", rule, code=2).stderr
    assert not (home / "shared_state").exists()


def test_decisions_and_stats_are_shown_without_secrets(home: Path) -> None:
    store = open_store(home, GuardrailSettings())
    for message, outcome in (("m1", "pre_blocked"), ("m2", "llm_error")):
        store.record(
            RecordedDecision(
                user_id="ada",
                message_id=message,
                decision="ignore",
                confidence=0.95,
                reason="Flagged keyword detected: 'spam'",
                matched_rule="flagged_keyword:spam" if message == "m1" else None,
                message_text="spam \x1b[31m password: hunter2-secret-9x",
                outcome=outcome,  # type: ignore[arg-type]
                retry_count=3 if message == "m2" else 0,
            )
        )
    store.close()
    listed = run(home, "decisions", "list").stdout
    assert "flagged_keyword:spam" in listed
    assert "\x1b" not in listed
    rows = told(home, "decisions", "list")["decisions"]
    assert [row["message_id"] for row in rows] == ["m2", "m1"]
    assert "hunter2" not in listed + json.dumps(rows)
    assert rows[0]["created_at"].endswith("Z")
    assert told(home, "decisions", "list", "--user", "bob") == {"decisions": []}
    stats = told(home, "guardrails", "show")
    assert (stats["blocked"], stats["silent_failures"], stats["retry_rate"]) == (1, 1, 1.0)
    assert stats["blocks"][0]["rule"] == "flagged_keyword:spam"
    assert "silent failures        1" in run(home, "guardrails", "show").stdout
    run(home, "guardrails", "show", "--days", "99999999", code=2)


def test_a_database_that_is_not_there_is_told_without_its_url(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RULES_URL", "postgresql://ada:hunter2@127.0.0.1:1/rules")
    (home / "unified_flow.toml").write_text('[guardrails]\ndatabase_url_env = "RULES_URL"\n')
    said = run(home, "rules", "list", code=1)
    assert "RULES_URL" in said.stderr
    assert "hunter2" not in said.output


def test_ask_says_why_there_is_no_answer(home: Path) -> None:
    run(home, "rules", "add", "spam")
    asked = run(home, "ask", "Is this spam?")
    assert asked.stdout == ""
    assert "GUARDRAIL_PRE_BLOCKED: Flagged keyword detected: 'spam'" in asked.stderr
    silent = told(home, "ask", "Is this spam?")
    assert (silent["response"], silent["should_respond"]) == (None, False)
    assert silent["guardrail_pre_result"]["decision"] == "block"
    batch = home / "asked.txt"
    batch.write_text("Is this spam?\n")
    said = run(home, "ask", "--batch", str(batch)).stdout
    assert "no answer: GUARDRAIL_PRE_BLOCKED: Flagged keyword detected: 'spam'" in said
    refused = told(home, "resume", "1", code=2)  # a block is no failure that could be retried
    assert (refused["error_type"], refused["status"]) == ("NotResumableError", "failed")
    assert told(home, "resume", "99", code=3)["error_type"] == "NoSuchTurnError"
    page = (home / "shared_state/turns/turn_000001/context.md").read_text()
    assert "Guardrail (pre): block, Flagged keyword detected: 'spam'" in page


def test_what_is_silenced_is_in_the_log_of_whatever_runs_a_turn(home: Path, tmp_path: Path) -> None:
    """A process of its own, as nobody else sets up logging there."""
    key = "sk-wrong-0123456789abcdefghijklmnop"
    run(home, "rules", "add", "spam")
    (home / "unified_flow.toml").write_text('policy = "silent"\n')
    asked = tmp_path / "asked.txt"
    asked.write_text("Is this spam?\nWhat is a topic?\n")

    def program(*args: str, code: int) -> None:
        command = [sys.executable, "-m", "unified_flow", *args, "--home", str(home)]
        env = {**os.environ, "OPENAI_API_KEY": key}
        done = forked.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr

    with ModelServer(api_key="another") as model:
        named = ["--model", "test-model", "--base-url", model.url]
        program("ask", "--batch", str(asked), *named, code=0)
        program("interventions", "retry", open_entries(home)[0]["id"], code=1)
    file = home / "logs" / "flow.log"
    said = [line.split(" ", 2)[2] for line in file.read_text().splitlines()]
    assert said[:2] == [
        "unified_flow.guardrails [GUARDRAILS PRE] Message flagged and blocked: "
        "Flagged keyword detected: 'spam'",
        "unified_flow.guardrails [SILENT FAILURE] Pre-guardrail blocked message for user default",
    ]
    assert sum("[SILENT FAILURE] LLM error for user default" in line for line in said) == 2
    assert key not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_doctor_looks_at_the_rules_and_tries_the_moderation(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def findings() -> dict[str, Any]:
        outcome = runner.invoke(app, ["doctor", "--json", "--home", str(home)])
        return {each["name"]: each for each in json.loads(outcome.stdout)["checks"]}

    assert findings()["guardrails"]["message"] == "nobody has rules"
    assert "moderation" not in findings()
    monkeypatch.setenv("OPENAI_MODERATION_ENABLED", "true")
    assert not findings()["moderation"]["ok"]
    run(home, "rules", "add", "spam", "scam")
    with ModerationServer() as server:
        (home / "unified_flow.toml").write_text(f'[guardrails]\nmoderation_url = "{server.url}"\n')
        found = findings()
        assert found["guardrails"]["message"] == "2 rules of 1 users"
        assert found["moderation"]["ok"]
    assert not findings()["moderation"]["ok"]
    own = "check_replies = true\nshadow = true\n"
    (home / "unified_flow.toml").write_text(f"[guardrails]\n{own}")
    monkeypatch.delenv("OPENAI_MODERATION_ENABLED")
    found = findings()
    assert found["guardrails"]["message"] == "2 rules of 1 users; shadow: nothing is blocked"
    assert "moderation" not in found
