"""`unified-flow tools` and the question at the terminal, as processes and on a real terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import forked
from tests.answers import COMPLETE, every_phase_by_model, open_entries, script
from tests.servers import mcp_server
from tests.servers.mcp_sessions import SessionServer
from tests.servers.model_server import ModelServer
from unified_flow.turns.results import Draft, Plan, ToolRequest

BIN = Path(sys.executable).parent / "unified-flow"
MINE = '''
def append(path: str, text: str) -> str:
    """Append a line to a file."""
    with open(path, "a") as file:
        file.write(text)
    return "key sk-proj-9f8e7d6c5b4a39281706f5e4d3c2b1a0"

def fails(n: int = 1) -> int:
    """Divide by nothing."""
    return 1 // (n - n)

def tells() -> None:
    """Tell a secret."""
    raise ValueError("refused: sk-proj-9f8e7d6c5b4a39281706f5e4d3c2b1a0")
'''


def run(*args: object, home: Path) -> subprocess.CompletedProcess[str]:
    return forked.run(
        [BIN, *map(str, args), "--home", str(home)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.fixture
def own(home: Path) -> Path:
    (home / "mine.py").write_text(MINE)
    (home / "unified_flow.toml").write_text('[tools]\nmodules = ["mine.py"]\n')
    return home


def test_the_list_says_what_each_does_and_whether_it_may(own: Path, docs: Path) -> None:
    done = run("tools", "list", "--docs", docs, "--json", home=own)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["tools"]}
    assert {"doc.search", "file.read", "calculate", "human.ask", "append"} <= set(rows)
    assert rows["doc.search"]["allowed"]
    assert rows["doc.search"]["source"] == "built in"
    assert (rows["append"]["allowed"], rows["append"]["access"]) == (False, ["writes"])
    assert "nobody has allowed it" in rows["append"]["why"]
    assert rows["append"]["source"].endswith("mine.py")
    assert set(rows["append"]["parameters"]["properties"]) == {"path", "text"}
    plain = run("tools", "list", home=own)
    assert "✗ append(path, text)" in plain.stdout
    assert "✗ tells()" in plain.stdout
    assert "may not run: it writes, and nobody has allowed it\n" in plain.stdout
    assert 'nobody has allowed it; "Remember that …" allows it\n' in plain.stdout


def test_a_server_that_does_not_start_hides_no_other_tool(own: Path) -> None:
    config = own / "unified_flow.toml"
    config.write_text(config.read_text() + '[mcp.lost]\ncommand = "no-such-program"\n')
    done = run("tools", "list", home=own)
    assert done.returncode == 1
    assert "calculate" in done.stdout
    assert "the MCP server lost cannot be started" in done.stderr
    doctor = run("doctor", "--json", home=own)
    checks = {c["name"]: c for c in json.loads(doctor.stdout)["checks"]}
    assert not checks["mcp lost"]["ok"]
    assert "no-such-program" in checks["mcp lost"]["message"]
    assert checks["tools"]["ok"]
    assert "append" in checks["tools"]["message"]


def test_what_a_server_prints_beside_the_protocol_reaches_no_terminal(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK logs it with a traceback, and the token that the server was given with it."""
    monkeypatch.setenv("SERVER_TOKEN", "tok-1f9c0a3e5b7d")
    config = own / "unified_flow.toml"
    config.write_text(
        f'{config.read_text()}[mcp.test]\ncommand = "{sys.executable}"\n'
        f'args = ["{mcp_server.__file__}", "banner"]\nenv_from = ["SERVER_TOKEN"]\n'
    )
    done = run("tools", "list", home=own)
    assert "test.add" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_starts_servers_and_imports_modules(own: Path) -> None:
    config = own / "unified_flow.toml"
    server = f'[mcp.test]\ncommand = "{sys.executable}"\nargs = ["{mcp_server.__file__}"]\n'
    config.write_text(config.read_text() + server)
    checks = json.loads(run("doctor", "--json", home=own).stdout)["checks"]
    [found] = [check for check in checks if check["name"] == "mcp test"]
    assert found["ok"]
    assert "test.add" in found["message"]
    (own / "mine.py").write_text("import no_such_thing\n")
    done = run("doctor", home=own)
    assert done.returncode == 1
    assert "No module named 'no_such_thing'" in done.stdout


def test_a_name_that_several_tools_of_a_server_have_is_told(own: Path) -> None:
    server = SessionServer()
    server.tools += [{**server.tools[0], "description": "Says it louder."}]
    config = own / "unified_flow.toml"
    with server:
        config.write_text(f'{config.read_text()}[mcp.test]\nurl = "{server.url}"\n')
        listed = run("tools", "list", home=own)
        assert listed.returncode == 1
        assert "several tools are named test.say: none of them is used" in listed.stderr
        assert "calculate" in listed.stdout
        assert "there are several: test.say" in run("doctor", home=own).stdout


def test_a_call_by_hand_goes_through_the_same_gate_and_checks(own: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    refused = run("tools", "run", "append", f"path={target}", "text=1", home=own)
    assert refused.returncode == 1
    assert "append may not run" in refused.stderr
    assert "--allow-tool append" in refused.stderr
    assert not target.exists()
    allowed = run(
        "tools", "run", "append", f"path={target}", "text=1", "--allow-tool", "app*", home=own
    )
    assert allowed.returncode == 0, allowed.stderr
    assert target.read_text() == "1", "text as the schema says, though it looks like a number"
    assert "9f8e7d6c5b4a" not in allowed.stdout
    assert open_entries(own) == []


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["calculate", "expression=17 * 3"], 0, '"value": 51'),
        (["calculate", "expr=3"], 2, "unknown argument 'expr'"),
        (["calculate", "17"], 2, "not key=value"),
        (["calculat", "expression=1"], 2, "Did you mean calculate?"),
        (["fails", "--allow-tool", "fails"], 1, "fails failed: ZeroDivisionError"),
        (["tells", "--allow-tool", "tells"], 1, "ValueError: refused: [redacted]"),
        (["human.ask", "question=Who?"], 1, "Who?"),
    ],
)
def test_what_comes_of_a_call(own: Path, args: list[str], code: int, said: str) -> None:
    done = run("tools", "run", *args, home=own)
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


class Terminal:
    """A command on a terminal of its own; `expect` reads until it says something."""

    def __init__(self, *command: object) -> None:
        self.master, slave = pty.openpty()
        self.process = forked.Process(
            list(map(str, command)), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.seen = ""

    def expect(self, text: str, timeout_s: float = 240.0) -> None:
        deadline = time.monotonic() + timeout_s
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.master, 65536).decode(errors="replace")
                except OSError:
                    assert text in self.seen, self.seen

    def type(self, text: str) -> None:
        self.seen = ""
        os.write(self.master, text.encode())

    def end(self) -> int:
        try:
            while select.select([self.master], [], [], 30)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:
                    break
                self.seen += data.decode(errors="replace")
            return self.process.wait(30)
        finally:
            os.close(self.master)


QUESTION = "allow it [o]nce, for this [s]ession, [a]lways, or [n]ot?"


@every_phase_by_model
def test_the_person_at_the_terminal_is_asked(
    own: Path, tmp_path: Path, model_server: ModelServer
) -> None:
    target = tmp_path / "target"
    args = {"path": str(target), "text": "x"}
    request = ToolRequest(tool="append", args=args, goal_id="g1")
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[request])
    unknown = Draft(response="I do not know.", abstained=True)
    model_server.script = script(planner=[plan, COMPLETE] * 3, synthesis=unknown)
    command = (BIN, "ask", "What?", "--model", "m", "--base-url", model_server.url, "--home", own)

    terminal = Terminal(*command, "--session", "s1")
    terminal.expect(QUESTION)
    assert "the tool append writes: Append a line to a file." in terminal.seen
    assert "    text: x\r\n" in terminal.seen
    assert not target.exists(), "it waits"
    terminal.type("what\n")
    terminal.expect(QUESTION)
    terminal.type("s\n")
    assert terminal.end() == 0, terminal.seen
    assert target.read_text() == "x"

    terminal = Terminal(*command, "--session", "s1")
    assert terminal.end() == 0, "allowed for the session: not asked again"
    assert QUESTION not in terminal.seen
    assert target.read_text() == "xx"
    listed = run("grants", "list", "--json", home=own)
    assert [g["tool"] for g in json.loads(listed.stdout)["grants"]] == ["append"]
    assert run("grants", "delete", "append", home=own).returncode == 0
    assert run("grants", "delete", "append", home=own).returncode == 3

    terminal = Terminal(*command, "--session", "s1")
    terminal.expect(QUESTION)
    terminal.type("n\n")
    assert terminal.end() == 0, "what is refused is planned around"
    assert target.read_text() == "xx"


def test_no_terminal_breaks_a_line_of_the_arguments(own: Path, tmp_path: Path) -> None:
    call = ("tools", "run", "append", f"path={tmp_path / 'target'}", f"text={'x' * 300}")
    terminal = Terminal(BIN, *call, "--home", own)
    terminal.expect(QUESTION)
    shown = [line for line in terminal.seen.splitlines() if "xxx" in line]
    assert sum(line.count("x") for line in shown) >= 300
    assert all(len(line) < 80 for line in shown)
    terminal.type("n\n")
    assert terminal.end() == 1


@every_phase_by_model
def test_what_nobody_caught_is_told_without_its_secrets(own: Path) -> None:
    module = own / "odd.py"
    module.write_text('raise BaseException("odd password=hunter2-secret-9x")\n')
    done = run("tools", "list", "--tools", str(module), home=own)
    assert done.returncode == 1
    assert "BaseException: odd" in done.stderr
    assert "hunter2" not in done.stderr


def test_a_call_by_hand_is_in_no_session_that_could_last_for_ever(
    own: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    call = (BIN, "tools", "run", "append", f"path={target}", "text=x", "--home", own)
    for _ in range(2):
        terminal = Terminal(*call)
        terminal.expect(QUESTION)
        terminal.type("s\n")
        assert terminal.end() == 0, terminal.seen
    assert target.read_text() == "xx"
    terminal = Terminal(*call, "--session", "s1")
    terminal.expect(QUESTION)
    terminal.type("s\n")
    assert terminal.end() == 0, terminal.seen
    listed = json.loads(run("grants", "list", "--json", home=own).stdout)["grants"]
    assert [grant["session_id"] for grant in listed] == ["s1"]


@every_phase_by_model
def test_what_is_no_exact_answer_allows_nothing(
    own: Path, tmp_path: Path, model_server: ModelServer
) -> None:
    target = tmp_path / "target"
    request = ToolRequest(tool="append", args={"path": str(target), "text": "x"})
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[request])
    model_server.script = script(planner=[plan, COMPLETE])
    url = model_server.url
    terminal = Terminal(BIN, "ask", "What?", "--model", "m", "--base-url", url, "--home", own)
    terminal.type("a\n")  # before the question is there
    terminal.expect(QUESTION)
    for said in ("absolutely not\nalways", "", "abort", "stop", "oh no", "sure?", "y"):
        terminal.type(f"{said}\n")
        terminal.expect(QUESTION)
    assert not target.exists()
    terminal.type("No\n")
    assert terminal.end() == 0, terminal.seen
    assert not target.exists()
    assert json.loads(run("grants", "list", "--json", home=own).stdout)["grants"] == []


@every_phase_by_model
def test_an_interrupt_at_the_question_leaves_the_turn_to_be_resumed(
    own: Path, tmp_path: Path, model_server: ModelServer
) -> None:
    request = ToolRequest(tool="append", args={"path": str(tmp_path / "t"), "text": "x"})
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[request])
    unknown = Draft(response="I do not know.", abstained=True)
    model_server.script = script(planner=[plan, COMPLETE], synthesis=unknown)
    url = model_server.url
    terminal = Terminal(BIN, "ask", "What?", "--model", "m", "--base-url", url, "--home", own)
    terminal.expect(QUESTION)
    terminal.process.send_signal(2)
    assert terminal.end() == 130
    assert not (tmp_path / "t").exists()
    assert open_entries(own) == []
    done = run("resume", 1, "--allow-tool", "append", home=own)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t").read_text() == "x"


def test_a_secret_in_a_result_or_in_what_is_asked_is_shown_to_nobody(
    own: Path, tmp_path: Path
) -> None:
    """`append` returns a key; here one is among its arguments as well."""
    args = (f"path={tmp_path / 't'}", "text=sk-proj-9f8e7d6c5b4a39281706f5e4d3c2b1a0")
    called = ("tools", "run", "append", *args)
    done = run(*called, "--json", "--allow-tool", "append", home=own)
    assert done.returncode == 0, done.stderr
    assert "sk-proj" not in done.stdout + done.stderr
    terminal = Terminal(BIN, *called, "--home", own)
    terminal.expect(QUESTION)
    assert "it would be called with" in terminal.seen
    assert "sk-proj" not in terminal.seen
    terminal.type("n\n")
    assert terminal.end() == 1
    assert "sk-proj" not in terminal.seen


WEATHER = '''
from unified_flow import tool

@tool(access="reads")
def weather(city: str) -> str:
    """The weather in a city right now."""
    return f"It is 18 degrees and raining in {city}."
'''


@pytest.mark.parametrize("size", ["large", "small"])
def test_a_model_calls_a_tool_of_ones_own(size: str, home: Path, model_server: ModelServer) -> None:
    noisy = 'print("the module speaks")\n' + WEATHER.replace(
        "    return", "    print(city)\n    return"
    )
    (home / "wtool.py").write_text(noisy)
    (home / "unified_flow.toml").write_text(f'size = "{size}"\n')
    request = {"tool": "weather", "args": {"city": "Paris"}, "goal_id": "g1"}
    execute = {"decision": "EXECUTE", "route": "coordinator", "tool_requests": [request]}
    plans = [execute, COMPLETE] if size == "large" else [request]
    said = {"abstained": False, "response": "It is raining in Paris [1]."}
    model_server.script = script(planner=plans, synthesis=said)
    served = ["--model", "test-model", "--base-url", model_server.url, "--json"]
    question = "What is the weather in Paris?"
    done = run("ask", question, "--tools", home / "wtool.py", *served, home=home)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert "the module speaks" in done.stderr
    assert answer["response"] == "It is raining in Paris [1]."
    assert [each["source"] for each in answer["citations"]] == ["weather"]
    assert answer["checks"]["claims_supported"] == "not checked"
    planner = next(each for each in model_server.requests if each.phase == "planner")
    told = str(planner.body["messages"])
    assert "weather(city: string): The weather in a city right now." in told


def test_a_function_that_declares_nothing_is_told_what_it_is_taken_for(home: Path) -> None:
    (home / "wtool.py").write_text(WEATHER.replace('@tool(access="reads")', ""))
    done = run("ask", "Hello", "--tools", home / "wtool.py", home=home)
    assert done.stderr.count("weather does not say what it touches") == 1
    assert '@tool(access="reads")' in done.stderr
    allowed = run(
        "ask", "Hello", "--tools", home / "wtool.py", "--allow-tool", "weather", home=home
    )
    assert "does not say" not in allowed.stderr
