"""The commands as a person or a script meets them."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from interventions import InterventionQueue
from interventions.cli import app
from interventions.cli.terminal import code_of
from interventions.errors import NoResumerError
from interventions.home import history_index, queue_file
from interventions.retry import contract

Run = Callable[..., Result]


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(home)
    (home / "shared_state").mkdir(mode=0o700)

    def invoke(*words: str, columns: int = 100, code: int = 0) -> Result:
        result = CliRunner().invoke(app, list(words), env={"COLUMNS": str(columns)})
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke


def short(name: str | None) -> str:
    return (name or "").rsplit("_", 1)[-1]


def test_list_is_worst_and_newest_first(queue: InterventionQueue, make, run: Run) -> None:
    names = {
        key: short(queue.put(make(severity=severity, type=kind)).intervention_id)
        for key, severity, kind in (
            ("medium", "medium", "error"),
            ("older", "high", "error"),
            ("newer", "high", "error"),
            ("waits", "high", "captcha"),
            ("critical", "critical", "error"),
        )
    }
    lines = run("list").stdout.splitlines()
    assert lines[0].split() == ["ID", "SEV", "LAST", "N", "PHASE", "TOOL", "ERROR"]
    shown = [line.split()[0] for line in lines[1:]]
    expected = ["critical", "waits", "newer", "older", "medium"]
    assert shown == [names[key] for key in expected]


def test_an_empty_queue_says_so_on_stderr(run: Run) -> None:
    result = run("list")
    assert result.stdout == ""
    assert "no open interventions" in result.stderr
    assert json.loads(run("list", "--json").stdout) == {
        "count": 0,
        "interventions": [],
        "groups": [],
    }


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 120, 200])
def test_tables_fit_the_width(queue, make, run: Run, columns: int) -> None:
    queue.put(make(error_message="väldigt långt 長い " * 30, tool="a.tool", session_id="s" * 60))
    name = queue.put(make(error_type="E", error_message="again")).intervention_id
    queue.resolve(name, "a very long note " * 20)
    queue.put(make(error_type="E", error_message="again"))
    for line in run("list", columns=columns).stdout.splitlines():
        from interventions.plaintext import cells

        assert cells(line) <= columns


def test_what_is_alike_is_one_row_and_flat_shows_all(queue, make, run: Run) -> None:
    ids = [
        queue.put(make(error_type="E", error_message=f"no answer in {n} s")).intervention_id
        for n in range(3)
    ]
    queue.put(make())
    out = run("list").stdout
    assert "[+2 alike]" in out
    assert f"also {short(ids[1])}, {short(ids[0])}" in out
    assert len(run("list", "--flat").stdout.splitlines()) == 5
    document = json.loads(run("list", "--json").stdout)
    assert document["count"] == 4
    assert sorted(map(len, (group["ids"] for group in document["groups"]))) == [1, 3]


def test_a_regression_is_marked_with_the_earlier_note(queue, make, run: Run) -> None:
    name = queue.put(make(error_type="E", error_message="again")).intervention_id
    queue.resolve(name, "raised the time-out")
    queue.put(make(error_type="E", error_message="again"))
    out = run("list").stdout
    assert "REGRESSION NEW E: again" in out
    assert f"was resolved in {short(name)}: raised the time-out" in out
    assert "REGRESSION" in run("list", columns=60).stdout


def test_json_lines_have_stable_keys(queue, make, run: Run) -> None:
    queue.put(make())
    queue.put(make())
    lines = [json.loads(line) for line in run("list", "--jsonl").stdout.splitlines()]
    assert len(lines) == 2
    assert {
        "id", "short_id", "state", "priority", "type", "severity", "phase", "tool", "error_type",
        "error_message", "error_category", "context", "session_id", "turn_id", "request_id",
        "created_at", "resolved_at", "resolution", "traceback", "fingerprint", "fp_version",
        "occurrences", "first_seen", "last_seen", "merged", "regression_of", "resolutions",
        "snoozed_until", "owner", "version", "environment",
    } <= set(lines[0])  # fmt: skip


def test_exit_code_when_anything_matched(queue, make, run: Run) -> None:
    run("list", "--exit-code", code=0)
    queue.put(make())
    run("list", "--exit-code", code=1)
    run("list", "--exit-code", "sev:critical", code=0)


def test_a_query_that_cannot_be_meant_is_a_usage_error(run: Run) -> None:
    assert "hint" in run("list", "sev:purple", code=2).stderr


def test_show_has_everything(queue, make, run: Run) -> None:
    failure = {"error_type": "E", "error_message": "again"}
    old = queue.put(make(**failure)).intervention_id
    queue.resolve(old, "the first cure")
    ribbon = [
        {"name": "query_analyzer", "status": "completed"},
        {"name": "reflection", "status": "failed"},
        {"name": "context_gatherer", "status": "not_run"},
    ]
    name = queue.put(
        make(
            **failure,
            traceback='E: again\n  File "x.py", line 3, in f\n  >     3 | boom()',
            context={
                "query": "why?",
                "turn": {"ribbon": ribbon, "model": "qwen", "recipe": "reflection.md"},
            },
        )
    ).intervention_id
    out = run("show", short(name)[:4]).stdout
    for part in (
        "✓ query_analyzer  ✗ reflection  · context_gatherer",
        "E: again",
        "> " + "    3 | boom()",
        "query: why?",
        "model: qwen",
        f"{short(old)}: the first cure (not verified, ",
        f"interventions resolve {short(name)} --note",
        f"interventions retry {short(name)}",
    ):
        assert part in out, part
    document = json.loads(run("show", short(name), "--json").stdout)
    assert document["id"] == name
    assert document["similar"][0]["id"] == old
    assert document["journal"] == []


def test_text_from_outside_commands_nothing(queue, make, run: Run) -> None:
    nasty = "\x1b[31mred\x1b]8;;http://evil\x07link [bold]x[/] [link=http://e]y\u202e\x9b2J"
    name = queue.put(make(error_message=nasty, context={"page title": nasty})).intervention_id
    for words in (["list"], ["show", short(name)], ["export", short(name), "--as", "markdown"]):
        out = run(*words, columns=200).stdout
        assert not set("\x1b\x07\u202e\x9b") & set(out)
        assert "[bold]x[/]" in out


NASTY = "\x1b[31mred\x1b]8;;http://evil\x07link\x9b2J\u202e\u2066\r\x7f\U000110bd"


def poisoned(value: object) -> object:
    """The same with NASTY in every text that is free."""
    if isinstance(value, str):
        return value + NASTY
    if isinstance(value, dict):
        return {name + NASTY: poisoned(item) for name, item in value.items()}
    return [poisoned(item) for item in value] if isinstance(value, list) else value


def test_no_field_of_no_entry_commands_the_terminal_in_any_command(
    home: Path, queue, make, run: Run
) -> None:
    turn = {"ribbon": [{"name": "planner", "status": "failed"}], "input": "x"}
    for number in range(3):
        queue.put(make(session_id="s", tool="t", context={"turn": turn, "a": ["b"]}))
        queue.put(make(error_type=f"E{number % 2}", session_id=f"s{number}"))
    closed = queue.entries()[0]["id"]
    queue.resolve(closed, "x")
    path = queue_file(home)
    document = json.loads(path.read_text())
    fixed = {"created_at", "first_seen", "last_seen", "resolved_at", "fingerprint", "id"}
    for entry in document["interventions"]:
        entry |= {"owner": "me", "regression_of": "int_x", "regression_note": "y"}
        entry |= {"traceback": "t", "location": "l", "culprit": "c", "request_id": "r"}
        entry |= {"latest_sample": {"a": "b"}, "error_category": "e", "superseded": "z"}
        for name in entry.keys() - fixed:
            entry[name] = poisoned(entry[name])
        entry["context"] = {**entry["context"], "turn": turn}
        entry["id"] += NASTY
    document["dropped"] = {NASTY: 1}
    path.write_text(json.dumps(document))
    for log in (home / "logs" / "errors").iterdir():
        log.unlink()  # it knows other ids
    history_index(home).unlink()
    queue = InterventionQueue(home)
    (path.parent / f"intervention_queue.corrupt-{NASTY.replace('/', '')}.json").write_text("{")
    (home / "logs" / "errors" / f"{NASTY.replace('/', '')}.jsonl").write_text("{torn")
    one, two, three = (
        short(name.removesuffix(NASTY))
        for name in [entry["id"] for entry in queue.entries() if not entry["resolved_at"]][:3]
    )
    short_closed = short(closed)
    commands = """list|list --flat|list --json|list --jsonl|show ONE|show ONE --json|health|
        health --json|assign ONE you|assign ONE|undo|snooze ONE --for 1d|resolve ONE -m x|
        resolve ONE -m x|dismiss TWO|reopen TWO|retry CLOSED|retry THREE|similar THREE|history|
        history --json|similar CLOSED|export THREE|export THREE --as markdown|show CLOSED|
        export CLOSED|resolve int_ -m x|watch --all --limit 2|watch --all --jsonl --limit 1|
        doctor --check|doctor|drain|dismiss --query is:open --yes|undo --json"""
    for command in commands.split("|"):
        words = [
            {"ONE": one, "TWO": two, "THREE": three, "CLOSED": short_closed}.get(word, word)
            for word in command.split()
        ]
        result = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
        assert not isinstance(result.exception, Exception), (command, result.exception)
        shown = set(result.output)
        assert not shown & set("\x1b\x07\x9b\u202e\u2066\r\x7f\U000110bd"), (command, result.output)
        if "json" in command or command.strip() in ("export THREE", "export CLOSED"):
            for line in result.stdout.splitlines() if "jsonl" in command else [result.stdout]:
                json.loads(line)
    env = {
        **os.environ,
        "_INTERVENTIONS_COMPLETE": "complete_zsh",
        "_TYPER_COMPLETE_ARGS": "interventions show ",
    }
    answer = subprocess.run(COMMAND, capture_output=True, text=True, env=env, cwd=home)
    assert not set(answer.stdout) & set("\x1b\x07\x9b\u202e")


def test_what_cannot_be_meant_is_said_in_words(queue, make, run: Run) -> None:
    name = short(queue.put(make()).intervention_id)
    result = run("snooze", name, "--until", "yesterday", code=2)
    assert "'yesterday' is no time" in result.stderr
    result = run("snooze", name, "--until", "2999-01-01T00:00:00", code=2)
    assert "is no time with a time zone" in result.stderr
    for words in (["list"], ["history"], ["similar", name]):
        assert "choose one" in run(*words, "--json", "--jsonl", code=2).stderr


def test_resolve_needs_a_note_and_closes(queue, make, run: Run) -> None:
    name = queue.put(make()).intervention_id
    assert "--note" in run("resolve", short(name), code=2).stderr
    run("resolve", short(name), "--note", "  ", code=2)
    assert run("resolve", short(name), "--note", "new key").stdout == f"resolved {name}\n"
    assert queue.find(name)["resolution"] == "new key"
    assert queue.journal(name)[0]["via"] == "cli"
    result = run("resolve", short(name), "--note", "again", code=5)
    assert "already resolved" in result.stderr
    assert "interventions reopen" in result.stderr


def test_many_ids_go_on_after_a_refusal(queue, make, run: Run) -> None:
    first, second = (queue.put(make()).intervention_id for _ in range(2))
    result = run("resolve", short(first), "zzzz", short(second), "-m", "x", "--json", code=3)
    document = json.loads(result.stdout)
    assert [entry["id"] for entry in document["resolved"]] == [first, second]
    assert document["failed"][0]["exit_code"] == 3


def test_bulk_by_query_never_asks_without_a_terminal(queue, make, run: Run) -> None:
    for _ in range(3):
        queue.put(make(phase="save"))
    queue.put(make())
    assert "--yes" in run("resolve", "--query", "phase:save", "--note", "x", code=2).stderr
    run("resolve", "--query", "phase:save", "--note", "x", "--yes")
    assert queue.open_count() == 1
    assert "nothing matches" in run("dismiss", "--query", "phase:save", "--yes").stderr
    run("resolve", "--note", "x", code=2)


def test_an_ambiguous_id_lists_the_candidates(queue, make, run: Run) -> None:
    for tail in ("abc123", "abd456"):
        queue.put(make(id=f"int_20260104_103000_{tail}"))
    result = run("show", "ab", code=3)
    assert "int_20260104_103000_abc123" in result.stderr
    assert "int_20260104_103000_abd456" in result.stderr


def test_dismiss_snooze_reopen_assign_undo(queue, make, run: Run) -> None:
    name = queue.put(make()).intervention_id
    run("snooze", short(name), "--for", "4h")
    assert short(name) in run("list", "is:snoozed").stdout
    assert re.search(r"by \S+, \ds ago \(.*Z\)$", run("undo", short(name)).stdout.strip())
    run("snooze", short(name), code=2)
    run("snooze", short(name), "--for", "soon", code=2)
    run("snooze", short(name), "--until", "2020-01-01T00:00:00Z", code=2)
    run("snooze", short(name), "--until-n-more", "5")
    run("assign", short(name), "ada")
    assert queue.find(name)["owner"] == "ada"
    run("assign", short(name), "ada", code=5)
    run("dismiss", short(name), "--note", "a test rig")
    assert run("list").stdout == ""
    assert "DISMISSED" in run("history").stdout
    run("reopen", short(name))
    run("reopen", short(name), code=5)
    undone = json.loads(run("undo", "--json").stdout)
    assert undone["undone"]["action"] == "reopen"
    assert undone["intervention"]["state"] == "dismissed"


def test_undo_of_another_version_than_was_seen(queue, make, run: Run) -> None:
    name = queue.put(make()).intervention_id
    seen = queue.resolve(name, "x")["version"]
    queue.reopen(name, by="bob")
    told = run("undo", short(name), "--expected-version", str(seen), code=5).stderr
    assert "reopen by bob" in told
    assert "needs the ID" in run("undo", "--expected-version", str(seen), code=2).stderr
    run("undo", short(name), "--expected-version", str(seen + 1))


def test_undo_that_would_pass_a_limit_exits_with_five(queue, make, run: Run, home: Path) -> None:
    (home / "unified_flow.toml").write_text("[queue]\nmax_size = 1\n")
    name = queue.put(make()).intervention_id
    run("resolve", short(name), "--note", "x")
    queue.put(make())
    assert "1 of 1 entries are open" in run("undo", code=5).stderr
    run("reopen", short(name), code=5)


def test_expected_version(queue, make, run: Run) -> None:
    name = queue.put(make()).intervention_id
    queue.assign(name, "ada", by="ada")
    result = run("resolve", short(name), "-m", "x", "--expected-version", "1", code=5)
    assert "assign by ada" in result.stderr


def test_retry_says_that_nothing_can_continue_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "RESUMERS_GROUP", "group.that.nobody.registers")
    with pytest.raises(NoResumerError, match="nothing that is installed") as raised:
        contract.find_resumer()
    assert "group.that.nobody.registers" in raised.value.hint
    assert code_of(raised.value) == 2


def test_show_recommends_a_retry_only_where_something_can_do_it(
    queue, make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = short(queue.put(make()).intervention_id)
    assert f"interventions retry {name}" in run("show", name).stdout
    monkeypatch.setattr(contract, "RESUMERS_GROUP", "group.that.nobody.registers")
    shown = run("show", name).stdout
    assert f"interventions resolve {name}" in shown
    assert "interventions retry" not in shown


def test_retry_of_a_turn_that_is_not_there(queue, make, run: Run) -> None:
    name = queue.put(make()).intervention_id
    for words in (["retry", short(name)], ["resolve", short(name), "-m", "x", "--retry"]):
        assert "there is no turn" in run(*words, code=3).stderr
    assert queue.open_count() == 1


@pytest.fixture
def resumer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that registers a resumer; it fails for odd turns."""
    site = tmp_path / "site"
    info = site / "fake_flow-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-flow\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[interventions.resumers]\nfake = fake_flow\n")
    (site / "fake_flow.py").write_text(
        "from interventions.retry.contract import RetryResult\n"
        "def retry(home, request):\n"
        "    (home / 'resumed').write_text(request.intervention_id)\n"
        "    if request.turn_id % 2: raise RuntimeError('still broken')\n"
        "    return RetryResult(request.turn_id, 'answered')\n"
    )
    monkeypatch.syspath_prepend(str(site))
    return site


def test_retry_resumes_and_resolves_only_if_that_works(
    queue, make, run: Run, resumer: Path, home: Path
) -> None:
    good = queue.put(make(turn_id=4)).intervention_id
    bad = queue.put(make(turn_id=5)).intervention_id
    assert json.loads(run("retry", short(good), "--json").stdout)["result"]["status"] == "answered"
    assert (home / "resumed").read_text() == good
    (row,) = queue.find(good)["resolutions"]
    assert (row["verified"], row["turn_status"]) == (True, "answered")
    told = run("retry", short(bad), code=1).stderr
    assert "still broken" in told
    assert "got past" not in told
    run("resolve", short(bad), "-m", "x", "--retry", code=1)
    assert queue.find(bad)["resolved_at"] is None
    other = queue.put(make(turn_id=6)).intervention_id
    run("resolve", short(other), "-m", "mended", "--retry")
    assert queue.find(other)["resolution"] == "mended"
    nowhere = queue.put(make(turn_id=0)).intervention_id
    assert "no turn" in run("retry", short(nowhere), code=5).stderr


def test_similar_and_history(queue, make, run: Run) -> None:
    failure = {"error_type": "E", "error_message": "again"}
    old = queue.put(make(**failure)).intervention_id
    queue.resolve(old, "first cure")
    new = queue.put(make(**failure)).intervention_id
    assert "first cure" in run("similar", short(new)).stdout
    assert "never resolved before" in run("similar", short(old)).stderr
    assert short(old) in run("history", "cure").stdout
    assert json.loads(run("history", "--json").stdout)["count"] == 1


def test_health(queue, make, run: Run) -> None:
    for _ in range(2):
        queue.put(make(session_id="abc"))
    out = run("health").stdout
    assert "healthy: 2/50 open (0 critical, 2 high, 0 medium)" in out
    assert "session abc: 2/5" in out
    assert re.search(r"^oldest open: \d+[smhdy]$", out, re.M)
    assert json.loads(run("health", "--json").stdout)["by_priority"]["high"] == 2


def test_drain_and_doctor(home: Path, make, run: Run) -> None:
    small = InterventionQueue(home, max_size=1)
    small.put(make())
    small.put(make())
    assert "interventions drain" in run("doctor").stdout
    assert run("drain").stdout == "put back 1, left 0\n"
    assert json.loads(run("drain", "--json").stdout) == {"put": {}, "left": 0, "unusable": 0}
    queue_file(home).write_text("{")
    result = run("list", code=4)
    assert "interventions doctor" in result.stderr
    run("doctor", "--check", code=4)
    assert "restored 2 entries" in run("doctor").stdout
    assert all(f["fine"] for f in json.loads(run("doctor", "--json").stdout)["findings"])


def test_export_is_redacted_again_and_private(home: Path, queue, make, run: Run) -> None:
    name = queue.put(make()).intervention_id
    path = queue_file(home)
    secret = "sk-" + "ABCDEFGHIJKLMNOP1234"
    path.write_text(path.read_text().replace("broke", f"broke {secret}"))
    assert secret not in run("export", short(name)).stdout
    assert secret not in run("export", short(name), "--as", "markdown").stdout
    run("export", short(name), "-o", "out.json")
    assert json.loads((home / "out.json").read_text())["intervention"]["id"] == name
    assert (home / "out.json").stat().st_mode & 0o777 == 0o600
    run("export", short(name), "-o", "no/such/folder.json", code=2)


def test_home_may_stand_before_or_after_the_command(
    tmp_path: Path, home: Path, queue, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.put(make())
    monkeypatch.chdir(tmp_path)
    for variable in (None, str(tmp_path / "another")):
        for words in (["--home", str(home), "list"], ["list", "--home", str(home)]):
            env = {"UNIFIED_FLOW_HOME": variable}
            assert len(CliRunner().invoke(app, words, env=env).stdout.splitlines()) == 2
    env = {"UNIFIED_FLOW_HOME": str(home)}
    assert len(CliRunner().invoke(app, ["list"], env=env).stdout.splitlines()) == 2


def test_help_names_every_command(run: Run) -> None:
    out = run("--help").stdout
    names = "list show resolve dismiss snooze reopen undo assign retry similar history health"
    for name in f"{names} drain doctor export watch".split():
        assert re.search(rf"^  {name} ", out, re.MULTILINE), name
        assert "Usage" in run(name, "--help").stdout


# -- as a real process ---------------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "interventions"]


def test_a_closed_pipe_is_no_error(home: Path, queue, make) -> None:
    for _ in range(30):
        queue.put(make(context={"pad": "x" * 6000}))
    words = [*COMMAND, "list", "--json", "--home", str(home)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 0


def test_watch_prints_new_ones_as_they_come_and_ends_when_interrupted(
    home: Path, queue, make
) -> None:
    queue.put(make(error_message="before"))
    words = [*COMMAND, "watch", "--jsonl", "--home", str(home)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "watching" in process.stderr.readline()
        queue.put(make(error_message="after"))
        assert json.loads(process.stdout.readline())["error_message"] == "after"
        process.send_signal(2)
        assert process.wait(20) == 130
        assert process.stderr.read() == ""


def in_a_terminal(words: list[str], env: dict[str, str], *answers: bytes) -> tuple[str, int]:
    """Run with a real terminal on all three streams; each answer is typed once it asks for it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(words[0], words, {**os.environ, **env})
    output, typed, quiet_since = b"", list[bytes](), time.monotonic()
    deadline = quiet_since + 120
    while True:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                data = os.read(terminal, 4096)
            except OSError:
                break
            if not data:
                break
            output, quiet_since = output + data, time.monotonic()
            if output.count(b"[y/N]") > len(typed) < len(answers):
                typed.append(answers[len(typed)])
                os.write(terminal, typed[-1])
        elif typed[-1:] == [b"\x03"] and time.monotonic() > quiet_since + 5:
            # Python does not notice a signal just before it reads: a person presses it again.
            os.write(terminal, typed[-1])
            quiet_since = time.monotonic()
        assert time.monotonic() < deadline, output
    os.close(terminal)
    return output.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_colour_on_a_terminal_only_and_never_with_no_color(home: Path, queue, make) -> None:
    queue.put(make(severity="critical"))
    words = [*COMMAND, "list", "--home", str(home)]
    assert "\x1b[31;1mcrit" in in_a_terminal(words, {"TERM": "xterm"})[0]
    assert "\x1b" not in in_a_terminal(words, {"TERM": "xterm", "NO_COLOR": "1"})[0]
    piped = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "\x1b" not in piped.stdout


def test_bulk_asks_on_a_terminal_and_no_is_no(home: Path, queue, make) -> None:
    for _ in range(2):
        queue.put(make())
    words = [*COMMAND, "dismiss", "--query", "is:open", "--home", str(home)]
    output, code = in_a_terminal(words, {}, b"n\n")
    assert "dismiss 2 interventions (" in output
    assert (code, queue.open_count()) == (2, 2)
    assert in_a_terminal(words, {}, b"y\n")[1] == 0
    assert queue.open_count() == 0


def test_a_person_is_asked_about_the_other_failures_that_are_closed_too(
    home: Path, queue, make
) -> None:
    for _ in range(5):
        held = queue.put(make(session_id="s")).intervention_id
    queue.put(make(session_id="s", severity="critical", error_message="disk full"))
    words = [*COMMAND, "resolve", held, "--note", "mended", "--home", str(home)]
    output, _ = in_a_terminal(words, {}, b"n\n")
    assert "holding 1 other failure:" in output
    assert "disk full" in output
    assert f"resolve 1 intervention ({short(held)}) and what else it holds? [y/N]" in output
    assert queue.open_count() == 5
    assert in_a_terminal(words, {}, b"y\n")[1] == 0
    assert queue.open_count() == 4


def test_every_question_can_be_interrupted_and_takes_no_noise_for_an_answer(
    home: Path, queue, make
) -> None:
    queue.put(make())
    words = [*COMMAND, "dismiss", "--query", "is:open", "--home", str(home)]
    assert in_a_terminal(words, {}, b"\x03")[1] == 130
    assert in_a_terminal(words, {"PYTHONUTF8": "1"}, b"\xff\xfe\n", b"perhaps\n", b"\n")[1] == 2
    assert in_a_terminal(words, {}, b"\x04")[1] == 2
    assert queue.open_count() == 1


def test_a_home_that_is_not_there_is_no_empty_queue(home: Path, run: Run) -> None:
    for words in (["list"], ["health"], ["doctor"], ["show", "last"], ["watch"]):
        assert "there is no folder" in run(*words, "--home", str(home / "typo"), code=3).stderr
    assert not (home / "typo").exists()
    (home / "file").touch()
    words = ["resolve", "last", "-m", "x", "--home", str(home / "file")]
    assert "there is no folder" in run(*words, code=3).stderr


def test_an_entry_that_cannot_be_read_is_said_beside_the_figures(
    home: Path, queue, make, run: Run
) -> None:
    queue.put(make(error_message="one"))
    queue.put(make(error_message="two"))
    document = json.loads(queue_file(home).read_text())
    document["interventions"][0]["turn_id"] = "x"
    queue_file(home).write_text(json.dumps(document))
    for words in (["list"], ["health"], ["health", "--json"]):
        assert "one entry cannot be read" in run(*words).stderr


def test_a_file_of_the_home_is_named_from_there(home: Path, queue, make, run: Run) -> None:
    path = home / "recipes" / "synthesis.md"
    queue.put(make(error_message=f"{path}:2: role is wrong"))
    assert ": recipes/synthesis.md:2: role is wrong" in run("list").stdout
    assert f"{path}:2: role is wrong" in run("show", "last").stdout


def test_list_loads_nothing_that_reading_does_not_need(home: Path, queue, make) -> None:
    queue.put(make())
    code = (
        "import sys\n"
        "from interventions.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = 'pydantic rich textual httpx filelock unified_flow monitor asyncio fastapi'\n"
        "heavy += ' sqlite3 interventions.settings'\n"
        "print([name for name in heavy.split() if name in sys.modules])"
    )
    words = [sys.executable, "-c", code, "list", "--home", str(home)]
    # The first one looks whether anything was lost, and notes what it saw.
    for _ in range(2):
        answer = subprocess.run(words, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"


def test_a_terminal_without_utf8_gets_the_text_spelled_out(home: Path, queue, make) -> None:
    queue.put(make(error_message="blåbär 長い"))
    words = [*COMMAND, "list", "--home", str(home)]
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    answer = subprocess.run(words, capture_output=True, check=True, env=env)
    assert b"bl\\xe5b\\xe4r" in answer.stdout


def test_another_typer_application_can_mount_it(home: Path, queue, make) -> None:
    import typer

    queue.put(make())
    outer = typer.Typer()
    outer.add_typer(app, name="interventions")
    outer.command("other")(lambda: None)
    result = CliRunner().invoke(outer, ["interventions", "list", "--home", str(home)])
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 2)


def test_stderr_and_stdout_are_apart(home: Path, queue, make) -> None:
    queue.put(make())
    words = [*COMMAND, "list", "--json", "--home", str(home)]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    document: dict[str, Any] = json.loads(answer.stdout)
    assert document["count"] == 1
    assert answer.stderr == ""


def test_last_is_the_newest(queue: InterventionQueue, make, run: Run) -> None:
    queue.put(make())
    newest = queue.put(make()).intervention_id
    assert newest in run("show", "last").stdout
    run("resolve", "last", "--note", "restarted")
    assert queue.find(newest)["resolution"] == "restarted"
    run("undo", "last")
    assert queue.find("last")["resolved_at"] is None


@pytest.mark.parametrize(
    "command",
    [
        *("show", "similar", "export", "assign", "snooze --for 1h", "dismiss", "resolve -m x"),
        *("retry --all", "resolve --retry -m x"),
    ],
)
def test_every_command_with_an_id_takes_last(
    queue: InterventionQueue, make, run: Run, resumer: Path, command: str
) -> None:
    queue.put(make(turn_id=1))
    newest = queue.put(make(turn_id=2)).intervention_id or ""
    name, *options = command.split()
    done = run(name, "last", *(["ada"] if name == "assign" else []), *options)
    assert newest in done.stdout + done.stderr or name in ("similar", "retry")


def test_what_is_no_term_of_a_query_is_said(queue, make, run: Run) -> None:
    queue.put(make(error_message="foo:bar"))
    found = run("list", "foo:bar")
    assert "foo: is no term, so 'foo:bar' is looked for as text" in found.stderr
    assert "1 shown, 1 open" in found.stderr
    assert "--exit-code is an option" in run("list", "sev:high --exit-code", code=2).stderr
    asked = run("dismiss", "--query", "foo:bar", "--yes").stderr
    assert "is looked for as text" in asked


def test_a_limit_says_how_many_there_are(queue, make, run: Run) -> None:
    for _ in range(3):
        queue.put(make())
    assert "2 of 3 shown, 3 open" in run("list", "--limit", "2").stderr


def test_last_of_nothing_is_not_found(run: Run) -> None:
    run("show", "last", code=3)


@pytest.mark.parametrize("words", [["-V"], ["--version"], ["list", "-V"], ["show", "--version"]])
def test_the_version_before_and_after_the_command(run: Run, words: list[str]) -> None:
    assert run(*words).stdout.startswith("interventions ")


@pytest.mark.parametrize("command", ["list", "history", "health", "doctor --check", "drain"])
def test_json_before_the_command_means_the_same(run: Run, command: str) -> None:
    before, after = run("--json", *command.split()), run(*command.split(), "--json")
    assert json.loads(before.stdout) == json.loads(after.stdout)


def test_json_before_watch_and_export(queue: InterventionQueue, make, run: Run) -> None:
    name = queue.put(make()).intervention_id
    watched = run("--json", "watch", "--all", "--limit", "1").stdout
    assert json.loads(watched)["id"] == name
    assert json.loads(run("--json", "export", "last").stdout)["intervention"]["id"] == name
    run("export", "last", "--json", "--as", "markdown", code=2)


def test_session_and_limit(queue: InterventionQueue, make, run: Run) -> None:
    ids = [queue.put(make(session_id='a "b"')).intervention_id for _ in range(3)]
    other = queue.put(make(session_id="c")).intervention_id

    def shown(*words: str) -> list[str]:
        return [row["id"] for row in json.loads(run(*words, "--json").stdout)["interventions"]]

    assert shown("list", "--session", 'a "b"') == ids[::-1]
    assert shown("list", "--limit", "1") == [other]
    assert shown("list", "phase:planner", "--session", "c") == [other]
    for each in ids:
        queue.resolve(each, "mended")
    assert shown("history", "--session", 'a "b"', "-n", "2") == ids[:0:-1]
    assert shown("history", "--session", "c") == []


@pytest.mark.parametrize("query", ["", " "])
def test_an_empty_query_is_not_all(queue: InterventionQueue, home: Path, make, query: str) -> None:
    queue.put(make())
    words = ["resolve", "--query", query, "--note", "x", "--yes", "--home", str(home)]
    assert CliRunner().invoke(app, words).exit_code == 2
    assert queue.open_count() == 1


def test_a_history_without_a_match_is_not_called_empty(
    queue: InterventionQueue, home: Path, make
) -> None:
    queue.resolve(queue.put(make()).intervention_id or "", "x")
    said = CliRunner().invoke(app, ["history", "elsewhere", "--home", str(home)])
    assert "nothing closed matches" in said.stderr
