"""Makes the home of a version with its commands, for the tests of every later one.

    python -m tests.compat.make_home HOME

HOME is a new folder whose path and whose machine's name may be published: they are written down.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.servers.model_server import ModelServer, cut_body, hang, status

TOPIC = "What is a topic?"
DOCS = {
    "robots.md": "# Robots\n\n## Topics\n\n"
    "A topic is a named bus over which nodes exchange messages. "
    "Topics are for continuous data streams such as sensor data.\n\n"
    "## Services\n\nA service is a remote procedure call between two nodes. "
    "Services must return quickly and are not for long-running work.\n",
    "cooking.txt": "Bread\n\nBread needs flour, water, salt and yeast. "
    "Let the dough rest for twelve hours.\n",
}
SETTINGS = """\
docs = ["docs"]
[tools]
modules = ["notes.py:write_note"]
"""
TOOLS = '''\
"""Tools of this home."""


def write_note(text: str) -> str:
    """Write a note."""
    return f"noted: {text}"
'''
PROGRAM = """\
import sys
from interventions import intervene

try:
    with intervene(phase="import", session_id=sys.argv[1]):
        raise ConnectionError(sys.argv[2])
except ConnectionError:
    pass
"""


def plan(tool: str | None = None, **args: Any) -> dict[str, Any]:
    if tool is None:
        return {"decision": "COMPLETE", "route": "synthesis"}
    request = {"tool": tool, "args": args, "goal_id": "g1"}
    return {"decision": "EXECUTE", "route": "coordinator", "tool_requests": [request]}


def verdict(decision: str) -> dict[str, Any]:
    names = ("claims_supported", "no_hallucinations", "query_addressed", "coherent_format")
    checks = dict.fromkeys(names, True)
    return {"decision": decision, "confidence": 0.8, "checks": checks, "issues": ["an issue"]}


def script(**over: Any) -> dict[str, Any]:
    """A good answer for each phase; `over` replaces some."""
    quote = {"source": "robots.md:5", "quote": "A topic is a named bus", "score": 0.9}
    return {
        "query_analyzer": {
            "resolved_query": TOPIC,
            "reference_resolution": {"status": "not_needed"},
            "query_type": "specific_content",
        },
        "reflection": {"decision": "PROCEED", "confidence": 0.9},
        "planner": [plan("doc.search", query="topic"), plan()],
        "synthesis": {"response": "A topic is a named bus.", "citations": [quote]},
        "validation": verdict("APPROVE"),
        **over,
    }


class Maker:
    def __init__(self, home: Path, server: ModelServer) -> None:
        self.home, self.server = home, server

    def start(self, *words: str, **settings: str) -> subprocess.Popen[str]:
        named = {f"UNIFIED_FLOW_{name.upper()}": value for name, value in settings.items()}
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=self.home,
            env={**os.environ, "UNIFIED_FLOW_HOME": str(self.home), **named},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, code: int = 0, **settings: str) -> str:
        process = self.start(*words, **settings)
        out, err = process.communicate()
        assert process.returncode == code, (words, process.returncode, out, err)
        return out

    def flow(self, *words: str, code: int = 0, **settings: str) -> str:
        return self.run("-m", "unified_flow", *words, code=code, **settings)

    def queue(self, *words: str, code: int = 0, **settings: str) -> str:
        return self.run("-m", "interventions", *words, code=code, **settings)

    def ask(self, session: str, question: str = TOPIC, code: int = 0, **more: Any) -> None:
        """In `more` a phase's name gives what the model says in it; the rest are settings."""
        phases = {name: more.pop(name) for name in script() if name in more}
        self.server.script = script(**phases)
        words = ("ask", question, "--session", session)
        self.flow(*words, code=code, **{**self.served, **more})

    @property
    def served(self) -> dict[str, str]:
        return {"model": "test-model", "base_url": self.server.url}

    def put(self, session: str, message: str, **settings: str) -> None:
        """A failure of a program that has no flow."""
        self.run("-c", PROGRAM, session, message, **settings)

    def stop(self, session: str, by: signal.Signals, **settings: str) -> None:
        """Ask, and end the process while the model thinks about its answer."""
        self.server.script = script(synthesis=hang())
        asked = len(self.server.requests)
        words = ("-m", "unified_flow", "ask", TOPIC, "--session", session)
        process = self.start(*words, **{**self.served, **settings})
        while not any(r.phase == "synthesis" for r in self.server.requests[asked:]):
            assert process.poll() is None, process.communicate()
        process.send_signal(by)
        process.communicate()

    def open_of(self, session: str) -> str:
        """The id of the session's open intervention."""
        found = json.loads(self.queue("list", f"session:{session}", "--json"))
        return str(found["interventions"][0]["id"])


def make(m: Maker) -> None:
    for name, text in DOCS.items():
        (m.home / "docs").mkdir(exist_ok=True)
        (m.home / "docs" / name).write_text(text)
    (m.home / "unified_flow.toml").write_text(SETTINGS)
    (m.home / "notes.py").write_text(TOOLS)
    down = status(503, "the model is being loaded")

    m.flow("index", "docs")
    m.flow("memory", "add", "I work with ROS 2")
    m.flow("memory", "add", "Likes tea", "--user", "anna")
    m.flow("rules", "add", "lottery", "act now")
    m.flow("rules", "add", "lawyer", "--escalate")
    m.flow("rules", "add", "spam", "--user", "anna")
    m.flow("rules", "set", "--no-comments", "--user", "anna")

    # Of a program without a flow: closed and archived, merged, assigned.
    for note in ("one", "two"):
        m.put("archived", f"catalogue {note} is empty")
        m.queue("resolve", m.open_of("archived"), "-m", f"filled catalogue {note}")
    m.put("archiving", "no catalogue at all", queue__max_size="1")
    m.queue("dismiss", m.open_of("archiving"), "-m", "a test")
    m.put("merged", "the catalogue does not answer")
    m.put("merged", "the catalogue does not answer", queue__max_per_session="1")
    m.put("merged", "the catalogue is damaged", queue__max_per_session="1")
    m.put("assigned", "the catalogue is locked")
    m.queue("assign", m.open_of("assigned"), "bob")

    # Every policy: answered, failed, killed, interrupted.
    down = status(503, "the model is being loaded")
    for policy in ("fail_fast", "graceful", "silent"):
        m.ask(f"answered-{policy}", policy=policy)
        code = 0 if policy == "silent" else 1
        m.ask(f"failed-{policy}", code=code, policy=policy, synthesis=down)
        times = ("graceful__generation_timeout_s", "graceful__pipeline_timeout_s")
        patient = {"policy": policy, **dict.fromkeys(times, "60")}
        m.stop(f"killed-{policy}", signal.SIGKILL, **patient)
        m.stop(f"stopped-{policy}", signal.SIGINT, **patient)

    m.server.script = script(synthesis=down)
    flags = ("--docs", "docs", "--model", "test-model", "--base-url", m.server.url)
    allowed = ("--allow-tool", "time.*")
    m.flow("ask", TOPIC, "--session", "flags", *flags, *allowed, code=1)

    # Without a model, and with it in every phase.
    m.flow("ask", TOPIC, "--session", "rules")
    m.flow("ask", "Are they for sensor data?", "--session", "rules")
    m.ask("revised", mix="model", validation=[verdict("REVISE"), verdict("APPROVE")])
    clarify = {"decision": "CLARIFY", "confidence": 1, "clarification_question": "Which?"}
    m.ask("clarify", mix="model", reflection=clarify)
    m.ask("long", code=1, mix="model", planner="That is no plan, but too long for a line. " * 1600)
    m.ask("loop", code=1, mix="model", planner=plan("doc.search", query="topic"))
    m.ask("writes", code=1, mix="model", planner=[plan("write_note", text="once"), plan()])
    m.ask("legal", "May my lawyer see this?")
    m.ask("blocked", "Win the lottery today!")

    # What a person has done with failures.
    refused = status(404, "no such model")
    for session in ("retried", "given-up"):
        m.ask(session, code=1, synthesis=refused)
    m.server.script = script()
    m.queue("resolve", m.open_of("retried"), "-m", "loaded the model", "--retry", **m.served)
    (turn,) = json.loads(m.flow("turns", "list", "--session", "given-up", "--json"))["turns"]
    m.flow("turns", "abandon", str(turn["turn_id"]), "-m", "not needed")
    (turn,) = json.loads(m.flow("turns", "list", "--session", "rules", "--json"))["turns"][1:]
    os.environ["EDITOR"] = "sed -i s/topic/service/"
    m.flow("resume", str(turn["turn_id"]), "--from", "reflection", "--edit")
    for session in ("resolved", "dismissed", "snoozed", "until", "undone", "again"):
        m.put(session, f"catalogue {session} is closed")
    m.queue("resolve", m.open_of("resolved"), "-m", "opened it")
    m.queue("dismiss", m.open_of("dismissed"), "-m", "nobody needs it")
    m.queue("snooze", m.open_of("snoozed"), "--until", "2999-01-01T00:00:00Z")
    m.queue("snooze", m.open_of("until"), "--until-n-more", "3")
    undone = m.open_of("undone")
    m.queue("resolve", undone, "-m", "by mistake")
    m.queue("undo", undone)
    m.queue("resolve", undone, "-m", "by mistake again")
    m.queue("reopen", undone)
    m.queue("resolve", m.open_of("again"), "-m", "opened it for good")
    m.put("again", "catalogue again is closed")  # a regression

    # More than a session may have, and more than the queue: the emergency log.
    m.ask("crowded", code=1, synthesis=refused)
    m.ask("crowded", code=1, synthesis=cut_body(), queue__max_per_session="1")
    m.put("dropped", "no room", queue__max_size="1")


if __name__ == "__main__":
    place = Path(sys.argv[1]).absolute()
    place.mkdir(exist_ok=True)
    with ModelServer() as model_server:
        make(Maker(place, model_server))
        assert not model_server.problems, model_server.problems
