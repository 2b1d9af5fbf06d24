"""Telling people at once: a new critical failure, a regression, the 10th and 100th occurrence.

Off unless the settings name an Apprise URL or a command. The failing turn waits only until a small
process, this module again, has detached. It delivers with a time limit, and writes its own trouble
into a log.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from subprocess import DEVNULL, PIPE
from threading import Thread
from typing import Any

from interventions.entry import Entry, fingerprints, open_ones, short_id
from interventions.errors import QueueError, how_to_install
from interventions.home import LOG_FOLDER
from interventions.secrets.redaction import redact_text
from interventions.settings import NotificationSettings, settings_of
from interventions.storage import jsonl
from interventions.storage.store import Admission
from interventions.times import to_text, utc_now

logger = logging.getLogger("interventions")

OCCURRENCES = (10, 100)
START_TIMEOUT_S = 5.0
_FIELDS = (
    *("fingerprint", "severity", "type", "phase", "tool", "error_type", "error_message"),
    *("occurrences", "session_id", "turn_id", "created_at", "regression_of", "regression_note"),
)


def event_of(failure: Entry, admission: Admission, entry: Entry, before: Iterable[Entry]) -> str:
    """`new_critical`, `regression`, `occurrence_10`, `occurrence_100`, or empty: no news.

    Of a failure that was open `before`, as an entry or inside one, only the number of occurrences
    is news. One that another's entry takes is as new as one with its own.
    """
    if admission.reason == "snoozed":
        return ""
    new = "new_critical" if failure["severity"] == "critical" else ""
    new = "regression" if failure.get("regression_of") else new
    if new and not any(failure["fingerprint"] in fingerprints(e) for e in open_ones(before)):
        return new
    for number in OCCURRENCES:
        if entry["occurrences"] - failure["occurrences"] < number <= entry["occurrences"]:
            return f"occurrence_{number}"
    return ""


def message(event: str, entry: Entry, failure: Entry) -> dict[str, Any]:
    """What the command gets on stdin: all of it redacted, short enough for any channel.

    `failure` may be another than the entry began with: then it is what is new."""
    about = entry if event.startswith("occurrence") else failure
    named = {"event": event, "id": entry["id"], "short_id": short_id(entry["id"])}
    known = {name: about.get(name) for name in _FIELDS}
    known["error_message"] = about["error_message"][:500]
    return {**named, **known, "occurrences": entry["occurrences"]}


def notify(home: Path, event: str, entry: Entry, failure: Entry) -> None:
    """Start the process that delivers it, if the settings name a channel. Never raises."""
    try:
        settings = settings_of(home, NotificationSettings)
        if not settings.url and not settings.command:
            return
        log, said = home / LOG_FOLDER / "notifications.log", message(event, entry, failure)
        task = {**asdict(settings), "log": str(log), "message": said}
        subprocess.run(
            [sys.executable, "-m", "interventions.admission.notifications"],
            input=json.dumps(task).encode(),
            stdout=DEVNULL,
            stderr=DEVNULL,
            timeout=START_TIMEOUT_S,
            check=True,
        )
    except (QueueError, OSError, subprocess.SubprocessError) as error:
        logger.warning("the notification could not be started: %s", error)


def main() -> None:
    task: dict[str, Any] = json.load(sys.stdin)
    if os.fork():
        os._exit(0)
    os.setsid()
    for trouble in deliver(task):
        line = {"at": to_text(utc_now()), "id": task["message"]["id"], "trouble": trouble}
        jsonl.append(Path(task["log"]), jsonl.encode(line))
    os._exit(0)


def deliver(task: dict[str, Any]) -> list[str]:
    """What went wrong, in words; empty when everything was delivered."""
    channels = ((_run, task["command"]), (_apprise, task["url"]))
    found = [send(to, task["message"], task["timeout_s"]) for send, to in channels if to]
    return [trouble for trouble in found if trouble]


def _run(command: str, message: dict[str, Any], timeout_s: float) -> str:
    try:
        words = shlex.split(command)
        # Its own group, so that what it started ends with it.
        process = subprocess.Popen(
            words, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
    except (OSError, ValueError, IndexError) as error:
        return f"the command {redact_text(command, 200)!r} cannot be started: {error}"
    try:
        process.communicate(json.dumps(message).encode() + b"\n", timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"{words[0]} took longer than {timeout_s:g} s"
    return f"{words[0]} exited with {process.returncode}" if process.returncode else ""


def _apprise(url: str, message: dict[str, Any], timeout_s: float) -> str:
    """Its plug-ins have time-outs of their own, each; a thread can be left behind."""
    results = [f"apprise took longer than {timeout_s:g} s"]
    thread = Thread(target=lambda: results.append(_send_to_apprise(url, message)), daemon=True)
    thread.start()
    thread.join(timeout_s)
    return results[-1]


def _send_to_apprise(url: str, message: dict[str, Any]) -> str:
    try:
        apprise: Any = import_module("apprise")
    except ImportError:
        return f"apprise is not installed: {how_to_install('notify')}"
    note = f" (was resolved: {message['regression_note']})" if message["regression_of"] else ""
    title = f"{message['event'].replace('_', ' ')}: {message['phase']} {message['error_type']}"
    seen = f"{message['occurrences']} x, interventions show {message['short_id']}"
    body = f"{message['error_message']}{note}\n{seen}"
    try:
        delivered = apprise.Apprise([url]).notify(title=title, body=body)
    except Exception as error:  # noqa: BLE001 - a plug-in's own code may raise anything
        return redact_text(f"apprise: {type(error).__name__}: {error}", 500)
    return "" if delivered else "apprise could not deliver it"


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"interventions.admission.notifications: {error}")
