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
from typing import Any

from interventions import jsonl
from interventions.timestamps import to_text, utc_now


def main() -> None:
    task: dict[str, Any] = json.load(sys.stdin)
    if os.fork():
        os._exit(0)
    os.setsid()
    # Apprise's plug-ins have time-outs of their own, each; this one holds for all of it.
    signal.alarm(max(int(task["timeout_s"]) + 2, 1))
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
        trouble += _apprise(task["url"], task["message"])
    return trouble


def _run(command: str, message: dict[str, Any], timeout_s: float) -> list[str]:
    words = shlex.split(command)
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.communicate(json.dumps(message).encode() + b"\n", timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return [f"{words[0]} took longer than {timeout_s:g} s"]
    return [f"{words[0]} exited with {process.returncode}"] if process.returncode else []


def _apprise(url: str, message: dict[str, Any]) -> list[str]:
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
    told = apprise.Apprise([url]).notify(title=title, body=body)
    return [] if told else ["apprise could not deliver it"]


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"interventions.deliver: {error}")
