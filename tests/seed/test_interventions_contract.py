"""interventions.md, line by line. Each test is named after the sentence that it holds to."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from typer.testing import CliRunner, Result

import interventions
from interventions import (
    Admission,
    AdmissionKind,
    AmbiguousIdError,
    ConflictError,
    InterventionQueue,
    InterventionRequest,
    LimitError,
    check_queue_health,
    create_intervention_request,
    intervene,
    redact,
    resolve_intervention,
)
from interventions.admission.preparation import normalise, prepare
from interventions.cli import app
from interventions.entry import is_open
from interventions.home import archive_file
from interventions.recovery import recover

NEEDED: dict[str, Any] = {
    "type": "error",
    "severity": "high",
    "phase": "planner",
    "error_type": "KeyError",
    "error_message": "'x'",
    "session_id": "s",
    "turn_id": 7,
}


def request(**fields: Any) -> InterventionRequest:
    return InterventionRequest(**{**NEEDED, **fields})


def apart(number: int, **fields: Any) -> InterventionRequest:
    """Another failure of another session, so that no limit but the size is met."""
    name = "abcdefghij"[number // 10] + "abcdefghij"[number % 10]
    own = {"session_id": name, "error_type": f"E{name}", "error_message": name}
    return request(**{**own, **fields})


@pytest.fixture
def queue(home: Path) -> InterventionQueue:
    return InterventionQueue(home=home)


@pytest.fixture
def run(home: Path) -> Callable[..., Result]:
    def invoke(*words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, ["--home", str(home), *words])
        assert result.exit_code == code, result.output
        return result

    return invoke


def lines_of(home: Path, pattern: str) -> list[dict[str, Any]]:
    paths = sorted((home / "logs" / "errors").glob(pattern))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def errors_logged(home: Path) -> list[dict[str, Any]]:
    return lines_of(home, "[0-9]*.jsonl")


def emergencies(home: Path) -> list[dict[str, Any]]:
    return lines_of(home, "emergency_*.jsonl")


class TestTheRequest:
    def test_the_documents_fields(self, queue: InterventionQueue) -> None:
        queue.put(request(tool="doc.search", context={"a": 1}))
        entry = queue.entries()[0]
        assert re.fullmatch(r"int_\d{8}_\d{6}_[0-9a-z]{6}", entry["id"])
        for name in (*NEEDED, "tool", "context", "created_at", "resolved_at", "resolution"):
            assert name in entry

    def test_beyond_the_document(self, queue: InterventionQueue) -> None:
        with (
            pytest.raises(ValueError, match="bad"),
            intervene(
                phase="p",
                session_id="s",
                queue=queue,
                error_category="parse_error",
                request_id="r1",
            ),
        ):
            raise ValueError("bad")
        entry = queue.entries()[0]
        assert (entry["error_category"], entry["request_id"]) == ("parse_error", "r1")
        assert 'raise ValueError("bad")' in entry["traceback"]
        assert entry["fingerprint"]
        assert entry["fp_version"] == 1
        assert (entry["occurrences"], entry["version"]) == (1, 1)
        for name in ("first_seen", "last_seen", "merged", "regression_of", "resolutions"):
            assert name in entry
        for name in ("snoozed_until", "owner"):
            assert entry[name] is None
        assert {"git_commit", "git_dirty", "packages"} <= set(entry["environment"])

    def test_normalisation_keeps_quoted_strings_unless_after_an_equals_sign(self) -> None:
        assert normalise("tool 'x' got name='y'") == "tool 'x' got name=<str>"

    def test_the_fingerprint_has_no_line_number(self) -> None:
        def failing(blank: int) -> str:
            scope: dict[str, Any] = {"__name__": "m"}
            exec(compile("\n" * blank + "def f():\n  raise OSError('x')", "m.py", "exec"), scope)
            try:
                scope["f"]()
            except OSError as error:
                request = InterventionRequest.from_exception(error, phase="p", session_id="s")
                return prepare(request)["fingerprint"]
            raise AssertionError

        assert failing(0) == failing(9)

    def test_first_and_latest_sample(self, queue: InterventionQueue) -> None:
        for turn in range(1, 8):
            queue.put(request(turn_id=turn))
        newest = queue.entries()[-1]
        assert newest["turn_id"] == 5
        assert newest["latest_sample"]["turn_id"] == 7
        assert newest["occurrences"] == 3
        assert newest["first_seen"] < newest["last_seen"]

    def test_unknown_fields_of_a_newer_version_are_kept(
        self, queue: InterventionQueue, home: Path
    ) -> None:
        queue.put(request())
        path = home / "shared_state" / "intervention_queue.json"
        document = json.loads(path.read_text())
        document["interventions"][0]["novel"] = 1
        document["novelty"] = 2
        path.write_text(json.dumps(document))
        queue.put(request())
        document = json.loads(path.read_text())
        assert (document["interventions"][0]["novel"], document["novelty"]) == (1, 2)

    def test_a_naive_datetime_is_refused(self) -> None:
        with pytest.raises(ValueError, match="timezone"):
            request(created_at=datetime(2026, 1, 4))


class TestRedaction:
    @pytest.mark.parametrize("key", ["accessToken", "client-secret", "X-Api-Key"])
    def test_keys_are_split_into_words(self, key: str) -> None:
        assert redact({key: "v"}) == {key: "[redacted]"}

    @pytest.mark.parametrize("key", ["session_id", "prompt_tokens", "author"])
    def test_and_the_like_are_not_secrets(self, key: str) -> None:
        assert redact({key: "v"}) == {key: "v"}

    @pytest.mark.parametrize(
        "value",
        [
            "sk-" + "abcdefghijklmnop",
            "Bearer " + "abcdefghijklmnop",
            "eyJ" + "hbGciOi.eyJzdWIiOi.abcdefghijklmnop",
            "AKIA" + "ABCDEFGHIJKLMNOP",
            "https://user:" + "abcdefghijklmnop@host/x",
            "-----BEGIN PRIVATE KEY-----\nabcdefghijklmnop\n-----END PRIVATE KEY-----",
        ],
    )
    def test_values_are_scanned_too(self, value: str) -> None:
        assert "abcdefghijklmnop" not in json.dumps(redact(["x", {"y": value}])).lower()

    def test_past_the_limits_the_rest_is_replaced(self) -> None:
        deep: Any = "the rest"
        for _ in range(50):
            deep = {"d": deep}
        assert "the rest" not in json.dumps(redact(deep))
        assert len(json.dumps(redact({"big": "y" * 10_000_000}))) < 20_000

    def test_nothing_unredacted_leaves_the_turn(
        self, queue: InterventionQueue, home: Path, run: Callable[..., Result]
    ) -> None:
        secret = "sk-" + "abcdefghijklmnop"
        queue.put(request(error_message=secret, context={"a": [secret]}, traceback=secret))
        name = queue.entries()[0]["id"]
        shown = "".join(
            run(*words).stdout for words in (["list"], ["show", name], ["export", name])
        )
        written = "".join(path.read_text() for path in home.rglob("*.json*"))
        assert secret not in shown + written


class TestPut:
    def test_the_signature_and_the_answer(self, home: Path) -> None:
        queue = InterventionQueue(home=home, max_size=50, max_per_session=5, max_per_error_type=10)
        admission = queue.put(request())
        assert isinstance(admission, Admission)
        assert [str(kind) for kind in AdmissionKind] == ["accepted", "merged", "counted", "dropped"]
        assert admission.intervention_id == queue.entries()[0]["id"]

    def test_the_documents_form_answers_with_a_bool(self, home: Path) -> None:
        queue = InterventionQueue(home, max_size=1)
        assert create_intervention_request(request(), queue=queue) is True
        assert create_intervention_request(request(session_id="t"), queue=queue) is False
        assert create_intervention_request(**NEEDED, home=home) is True

    def test_1_size(self, queue: InterventionQueue, home: Path, caplog) -> None:
        for number in range(50):
            assert queue.put(apart(number)).kind == "accepted"
        admission = queue.put(apart(50))
        assert (admission.kind, admission.intervention_id) == ("dropped", None)
        assert len(emergencies(home)) == 1
        assert emergencies(home)[0]["error_message"] == "fa"
        assert "critical" in {record.levelname.lower() for record in caplog.records}
        assert check_queue_health(home)["dropped"] == {"queue_full": 1}
        queue.resolve(queue.entries()[7]["id"], "room")
        assert queue.put(apart(51)).kind == "accepted"
        assert len(queue.entries()) == 50

    def test_2_session(self, queue: InterventionQueue) -> None:
        for number in range(5):
            queue.put(apart(number, session_id="one", type=["error", "captcha"][number % 2]))
        admission = queue.put(apart(9, session_id="one", type="captcha"))
        assert admission
        assert (admission.kind, admission.intervention_id) == ("merged", queue.entries()[3]["id"])
        none_of_it = queue.put(apart(8, session_id="one", type="permission"))
        assert none_of_it.intervention_id == queue.entries()[4]["id"]

    def test_3_error_type(self, queue: InterventionQueue) -> None:
        for number in range(10):
            queue.put(apart(number, error_type="E"))
        admission = queue.put(apart(11, error_type="E"))
        assert admission
        assert (admission.kind, admission.intervention_id) == ("counted", queue.entries()[9]["id"])
        same = queue.put(apart(4, error_type="E", session_id="other"))
        assert same.intervention_id == queue.entries()[4]["id"]

    def test_4_otherwise_accepted(self, queue: InterventionQueue) -> None:
        assert queue.put(request()).kind == "accepted"
        assert queue.put(request()).kind == "accepted"
        assert len(queue.entries()) == 2

    def test_a_snoozed_fingerprint_is_counted_before_these(self, home: Path) -> None:
        queue = InterventionQueue(home, max_size=1)
        name = queue.put(request()).intervention_id or ""
        queue.snooze(name, duration=timedelta(hours=1))
        assert queue.put(request()) == Admission(AdmissionKind.COUNTED, name, "snoozed")

    def test_a_retried_turn_before_these(self, home: Path) -> None:
        queue = InterventionQueue(home, max_size=1)
        name = queue.put(request()).intervention_id or ""
        assert queue.put(request(retry_of=name)).kind == "counted"
        later = queue.put(request(retry_of=name, phase="synthesis"))
        assert later.kind == "accepted"
        assert queue.find(name)["resolved_at"]

    def test_reopen_and_undo_that_would_pass_a_limit_are_refused(
        self, home: Path, run: Callable[..., Result]
    ) -> None:
        queue = InterventionQueue(home)
        for number in range(50):
            queue.put(apart(number))
        name = queue.entries()[0]["id"]
        queue.resolve(name, "x")
        queue.put(apart(50))
        with pytest.raises(LimitError):
            queue.undo(name)
        run("reopen", name, code=5)
        run("undo", name, code=5)

    def test_whatever_the_admission_one_line_of_the_error_log(self, home: Path) -> None:
        queue = InterventionQueue(home, max_size=2, max_per_session=1)
        for session in ("a", "a", "b", "c"):
            queue.put(request(session_id=session, context={"whole": True}))
        logged = errors_logged(home)
        assert [line["admission"] for line in logged] == [
            "accepted",
            "merged",
            "accepted",
            "dropped",
        ]
        assert all(line["context"] == {"whole": True} for line in logged)

    def test_trouble_goes_to_the_emergency_log_and_never_masks_the_error(self, home: Path) -> None:
        queue = InterventionQueue(home, lock_timeout_s=0.05)
        queue.put(request())
        with (
            FileLock(home / "shared_state" / "intervention_queue.json.lock"),
            pytest.raises(ZeroDivisionError),
            intervene(phase="p", session_id="s", queue=queue),
        ):
            print(1 / 0)
        assert emergencies(home)[0]["error_type"] == "ZeroDivisionError"

    def test_drain_oldest_critical_first_each_at_most_once(self, home: Path) -> None:
        small = InterventionQueue(home, max_size=1)
        small.put(request())
        for number, severity in enumerate(["medium", "critical", "critical"]):
            small.put(apart(number, severity=severity))
        middle = InterventionQueue(home, max_size=3)
        assert len(recover(middle, lost=False).put) == 2
        assert [entry["error_message"] for entry in middle.entries()] == ["'x'", "ab", "ac"]
        assert len(recover(InterventionQueue(home), lost=False).put) == 1
        assert recover(InterventionQueue(home), lost=False).put == {}

    def test_a_drain_that_is_refused_writes_no_transition(self, home: Path) -> None:
        full = InterventionQueue(home, max_size=1)
        full.put(request())
        full.put(apart(1))
        assert (recover(full, lost=False).put, recover(full, lost=False).left) == ({}, 1)
        assert list(full.journal()) == []

    def test_a_refused_drain_leaves_what_it_would_have_closed(
        self, home: Path, tmp_path: Path
    ) -> None:
        queue = InterventionQueue(home)
        ids = [str(queue.put(apart(number)).intervention_id) for number in range(3)]
        # Another queue has no room for a failure that says: the retry of the first got past it.
        elsewhere = InterventionQueue(tmp_path / "elsewhere", max_size=1)
        elsewhere.put(apart(4))
        elsewhere.put(request(phase="save", error_message="later", retry_of=ids[0]))
        (emergencies_of,) = (elsewhere.home / "logs" / "errors").glob("emergency_*")
        shutil.copy(emergencies_of, home / "logs" / "errors")
        assert recover(InterventionQueue(home, max_size=2), lost=False).left == 1
        assert all(is_open(queue.find(intervention_id)) for intervention_id in ids)
        assert not archive_file(home).exists()


class TestTheFile:
    def test_its_form_place_and_modes(self, queue: InterventionQueue, home: Path) -> None:
        queue.put(request())
        path = home / "shared_state" / "intervention_queue.json"
        document = json.loads(path.read_text())
        assert document["version"] == 1
        assert isinstance(document["interventions"], list)
        assert isinstance(document["dropped"], dict)
        assert path.stat().st_mode & 0o777 == 0o600

    def test_readers_take_no_lock(self, queue: InterventionQueue, home: Path) -> None:
        queue.put(request())
        with queue.store.transaction(1):
            assert len(queue.entries()) == 1
            assert check_queue_health(home)["total"] == 1

    def test_threads_write_at_once(self, home: Path) -> None:
        queue = InterventionQueue(home)
        threads = [threading.Thread(target=queue.put, args=(apart(n),)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(queue.entries()) == 20

    def test_a_file_that_does_not_parse_is_moved_aside_and_rebuilt(
        self, queue: InterventionQueue, home: Path, run: Callable[..., Result]
    ) -> None:
        name = queue.put(request()).intervention_id
        path = home / "shared_state" / "intervention_queue.json"
        path.write_text("{ not json")
        admission = queue.put(request())
        (aside,) = path.parent.glob("intervention_queue.corrupt-*.json")
        assert str(aside) in admission.detail
        assert aside.read_text() == "{ not json"
        run("doctor")
        assert [entry["id"] for entry in queue.entries()] == [name]

    def test_left_over_temporary_files_are_swept(self, home: Path) -> None:
        (home / "shared_state").mkdir()
        left = home / "shared_state" / ".intervention_queue.4711.tmp"
        left.write_text("half a queue")
        InterventionQueue(home).put(request())
        assert not left.exists()


class TestResolving:
    def test_conflicts_are_never_an_overwrite(self, queue: InterventionQueue) -> None:
        name = queue.put(request()).intervention_id or ""
        version = queue.find(name)["version"]
        queue.assign(name, "ada")
        with pytest.raises(ConflictError):
            queue.resolve(name, "note", expected_version=version)
        queue.resolve(name, "note")
        with pytest.raises(ConflictError):
            queue.resolve(name, "other")
        assert queue.find(name)["resolution"] == "note"

    def test_every_transition_is_journalled(self, queue: InterventionQueue) -> None:
        name = queue.put(request()).intervention_id or ""
        queue.snooze(name, until_n_more=3)
        queue.assign(name, "bob")
        queue.dismiss(name)
        queue.reopen(name)
        queue.resolve(name, "x")
        queue.undo()
        actions = ["snooze", "assign", "dismiss", "reopen", "resolve", "undo"]
        assert [line["action"] for line in queue.journal()] == actions
        assert all(line["by"] and line["at"] and line["host"] for line in queue.journal())

    @pytest.mark.parametrize("close", [InterventionQueue.resolve, InterventionQueue.dismiss])
    def test_reopening_clears_the_old_resolution(
        self, close: Callable[..., Any], queue: InterventionQueue, run: Callable[..., Result]
    ) -> None:
        name = queue.put(request()).intervention_id or ""
        close(queue, name, "mended too early")
        opened = queue.reopen(name)
        assert (opened["resolution"], opened["resolved_at"], opened["dismissed_at"]) == (None,) * 3
        listed = json.loads(run("list", "--json").stdout)["interventions"]
        assert [(entry["id"], entry["resolution"]) for entry in listed] == [(name, None)]
        queue.resolve(name, "mended")
        assert queue.find(name)["resolution"] == "mended"

    def test_any_unique_prefix(self, queue: InterventionQueue) -> None:
        for tail in ("abc123", "abd456"):
            queue.put(request(id=f"int_20260104_103000_{tail}"))
        assert queue.find("abc")["id"].endswith("abc123")
        assert queue.find("int_20260104_103000_abd")["id"].endswith("abd456")
        with pytest.raises(AmbiguousIdError) as caught:
            queue.find("ab")
        assert len(caught.value.candidates) == 2

    def test_a_regression_shows_the_earlier_note(
        self, queue: InterventionQueue, run: Callable[..., Result]
    ) -> None:
        first = queue.put(request()).intervention_id or ""
        queue.resolve(first, "a longer time-out")
        second = queue.put(request()).intervention_id or ""
        assert queue.find(second)["regression_of"] == first
        assert "REGRESSION" in run("list").stdout
        assert "a longer time-out" in run("list").stdout
        assert [entry["id"] for entry in queue.similar(second)] == [first]

    def test_the_documents_function(self, queue: InterventionQueue, home: Path) -> None:
        name = queue.put(request()).intervention_id or ""
        resolve_intervention(name, "done", home=home)
        assert queue.find(name)["resolution"] == "done"

    def test_zero_is_no_turn(self, queue: InterventionQueue) -> None:
        with (
            pytest.raises(OSError, match="x"),
            intervene(phase="p", session_id="s", turn_id=0, queue=queue),
        ):
            raise OSError("x")
        assert queue.entries()[0]["turn_id"] == 0


class TestHealth:
    @pytest.mark.parametrize(
        ("unresolved", "grade"),
        [(0, "healthy"), (9, "healthy"), (10, "warning"), (29, "warning"), (30, "critical")],
    )
    def test_the_thresholds(self, queue: InterventionQueue, home: Path, unresolved, grade) -> None:
        for number in range(unresolved):
            queue.put(apart(number))
        health = check_queue_health(home)
        assert health["queue_health"] == grade
        assert (health["total"], health["unresolved"]) == (unresolved, unresolved)

    def test_and_the_rest(self, queue: InterventionQueue, home: Path) -> None:
        name = queue.put(request()).intervention_id or ""
        queue.resolve(name, "x")
        queue.put(request())
        health = check_queue_health(home)
        assert health["regressions"] == 1
        assert health["median_hours_to_resolve"] == 0
        assert (health["merged"], health["counted"], health["dropped"]) == (0, 0, {})


class TestTheCommand:
    @pytest.mark.parametrize(
        "name",
        [
            "list",
            "show",
            "resolve",
            "dismiss",
            "snooze",
            "reopen",
            "undo",
            "assign",
            "retry",
            "similar",
            "history",
            "health",
            "drain",
            "doctor",
            "export",
            "watch",
        ],
    )
    def test_every_command_is_there(self, name: str, run: Callable[..., Result]) -> None:
        assert "Usage" in run(name, "--help").stdout

    def test_exit_codes(self, queue: InterventionQueue, home: Path, run) -> None:
        name = queue.put(request()).intervention_id or ""
        run("list", "--exit-code", code=1)
        run("list", "sev:nonsense", code=2)
        run("show", "zzz", code=3)
        run("resolve", name, "--note", "x", code=0)
        run("resolve", name, "--note", "x", code=5)
        (home / "shared_state" / "intervention_queue.json").write_text("{")
        run("list", code=4)

    def test_the_query_of_the_page(self, queue: InterventionQueue, run) -> None:
        queue.put(request(severity="critical", tool="x", type="captcha", session_id="abc"))
        query = "sev:critical phase:planner tool:x type:captcha is:open age:<1h session:abc"
        assert json.loads(run("list", "--json", query).stdout)["count"] == 1

    def test_one_process_does_it_from_any_program(self, home: Path) -> None:
        code = (
            "import sys\n"
            "from interventions import InterventionQueue, InterventionRequest, intervene\n"
            "try:\n"
            "    with intervene(phase='import', session_id='s', home=sys.argv[1]): int('x')\n"
            "except ValueError: pass\n"
            "print(any(name.startswith(('unified_flow', 'monitor')) for name in sys.modules))"
        )
        words = [sys.executable, "-c", code, str(home)]
        answer = subprocess.run(words, capture_output=True, text=True, check=True)
        assert answer.stdout == "False\n"
        assert InterventionQueue(home).entries()[0]["error_type"] == "ValueError"

    def test_public_names(self) -> None:
        for name in interventions.__all__:
            assert getattr(interventions, name) is not None
