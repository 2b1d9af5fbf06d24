"""First paint of the monitor with 50 entries, and with 5,000 archived besides, against a minimal
Textual application.

    python benchmarks/monitor.py [ROUNDS]

Each is started in a terminal of its own (a pseudo-terminal, 120 by 40) and timed from the start of
the process to the moment when its text is on that terminal. Alternating, the median counts.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from statistics import median

from interventions import InterventionQueue, InterventionRequest
from interventions.home import archive_file

MINIMAL = """
from textual.app import App
from textual.widgets import Footer, Static

class Minimal(App):
    def compose(self):
        yield Static("the-first-paint")
        yield Footer()

Minimal().run()
"""
ALLOWED = {"50 open": 2.2, "5000 archived": 2.4}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as folder:
        minimal = Path(folder, "minimal.py")
        minimal.write_text(MINIMAL)
        commands = {"minimal": ([sys.executable, str(minimal)], b"the-first-paint", b"\x11")}
        for name, archived in zip(ALLOWED, (0, 5000), strict=True):
            home = Path(folder, name)
            _fill(home, archived)
            command = [sys.executable, "-m", "monitor", "--home", str(home)]
            commands[name] = (command, b"Failure49", b"q")
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds + 1):
            for name, (command, wanted, leave) in commands.items():
                times[name].append(_first_paint_ms(command, wanted, leave))
    # The first warms the disk.
    middle = {name: median(found[1:]) for name, found in times.items()}
    for name, found in times.items():
        ratio = middle[name] / middle["minimal"]
        allowed = f", allowed {ALLOWED[name]}" if name in ALLOWED else ""
        print(
            f"{name:14} {middle[name]:6.0f} ms  (best {min(found[1:]):.0f}) {ratio:5.2f}{allowed}"
        )
    raise SystemExit(any(middle[n] > most * middle["minimal"] for n, most in ALLOWED.items()))


def _fill(home: Path, archived: int) -> None:
    queue = InterventionQueue(home)
    for number in range(50):
        queue.put(
            InterventionRequest(
                type="error",
                severity="critical" if number == 49 else "high",
                phase="planner",
                error_type=f"Failure{number:02}",
                error_message="it broke",
                session_id=f"s{number}",
                turn_id=number,
                traceback="line\n" * 40,
            )
        )
    closed = queue.entries()[0] | {"resolved_at": "2025-01-01T00:00:00Z", "resolution": "mended"}
    with archive_file(home).open("w") as file:
        for number in range(archived):
            file.write(json.dumps(closed | {"id": f"int_20250101_000000_{number:06x}"}) + "\n")
    queue.health()  # a long past is indexed when the queue is used


def _first_paint_ms(command: list[str], wanted: bytes, leave: bytes) -> float:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color"}
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    seen = b""
    while wanted not in seen:
        if not select.select([ours], [], [], 30)[0]:
            raise SystemExit(f"{command} drew nothing for 30 s")
        seen += os.read(ours, 65536)
    taken = (time.perf_counter() - started) * 1000
    os.write(ours, leave)
    try:
        while os.read(ours, 65536):
            pass
    except OSError:
        pass
    os.close(ours)
    process.wait(timeout=30)
    return taken


if __name__ == "__main__":
    main()
