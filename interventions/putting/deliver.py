"""The process that delivers one notification, started by `notifications` with its task on stdin.

It detaches at once, so that whoever failed does not wait, and ends itself when the time is up.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

from interventions.secrets.redaction import redact_text
from interventions.storage import jsonl
from interventions.timestamps import to_text, utc_now


def main() -> None:
    task: dict[str, Any] = json.load(sys.stdin)
    if os.fork():
        os._exit(0)
    os.setsid()
    # The last resort: both channels keep to their own limit.
    signal.alarm(2 * int(task["timeout_s"]) + 5)
    for trouble in deliver(task):
        line = {"at": to_text(utc_now()), "id": task["message"]["id"], "trouble": trouble}
        jsonl.append(Path(task["log"]), jsonl.encode(line))
    os._exit(0)


def deliver(task: dict[str, Any]) -> list[str]:
    """What went wrong, in words; empty when everybody was told."""
    trouble = []
    if task["command"]:
        trouble += _run(task["command"], task["message"], task["timeout_s"])
    if task["url"]:
        trouble += _apprise(task["url"], task["message"], task["timeout_s"])
    return trouble


def _run(command: str, message: dict[str, Any], timeout_s: float) -> list[str]:
    try:
        words = shlex.split(command)
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Its own group, so that what it started ends with it.
            start_new_session=True,
        )
    except (OSError, ValueError, IndexError) as error:
        return [f"the command {redact_text(command, 200)!r} cannot be started: {error}"]
    try:
        process.communicate(json.dumps(message).encode() + b"\n", timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return [f"{words[0]} took longer than {timeout_s:g} s"]
    return [f"{words[0]} exited with {process.returncode}"] if process.returncode else []


def _apprise(url: str, message: dict[str, Any], timeout_s: float) -> list[str]:
    """Its plug-ins have time-outs of their own, each; a thread can be left behind."""
    told: list[list[str]] = []
    thread = Thread(target=lambda: told.append(_tell_apprise(url, message)), daemon=True)
    thread.start()
    thread.join(timeout_s)
    return told[0] if told else [f"apprise took longer than {timeout_s:g} s"]


def _tell_apprise(url: str, message: dict[str, Any]) -> list[str]:
    try:
        apprise: Any = import_module("apprise")
    except ImportError:
        return ["apprise is not installed: pip install 'unified-flow[notify]'"]
    note = f" (was resolved: {message['regression_note']})" if message["regression_of"] else ""
    title = f"{message['event'].replace('_', ' ')}: {message['phase']} {message['error_type']}"
    body = (
        f"{message['error_message']}{note}\n{message['occurrences']} x, "
        f"interventions show {message['short_id']}"
    )
    try:
        told = apprise.Apprise([url]).notify(title=title, body=body)
    except Exception as error:  # noqa: BLE001 - a plug-in's own code may raise anything
        return [redact_text(f"apprise: {type(error).__name__}: {error}", 500)]
    return [] if told else ["apprise could not deliver it"]


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"interventions.putting.deliver: {error}")
