"""First paint of the monitor with 50 entries, against a minimal Textual application.

    python benchmarks/monitor.py [ROUNDS]

Each is started in a terminal of its own (a pseudo-terminal, 120 by 40) and timed from the start of
the process to the moment when its text is on that terminal. Alternating, the median counts.
"""

from __future__ import annotations

import fcntl
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

MINIMAL = """
from textual.app import App
from textual.widgets import Footer, Static

class Minimal(App):
    def compose(self):
        yield Static("the-first-paint")
        yield Footer()

Minimal().run()
"""
ALLOWED = 2.5


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        _fill(home)
        minimal = home / "minimal.py"
        minimal.write_text(MINIMAL)
        commands = {
            "minimal": ([sys.executable, str(minimal)], b"the-first-paint", b"\x11"),
            "monitor": ([sys.executable, "-m", "monitor", "--home", folder], b"Failure49", b"q"),
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds + 1):
            for name, (command, wanted, leave) in commands.items():
                times[name].append(_first_paint_ms(command, wanted, leave))
    middle = {name: median(found[1:]) for name, found in times.items()}  # the first warms the disk
    for name, found in times.items():
        print(f"{name:8} {middle[name]:6.0f} ms  (best {min(found[1:]):.0f})")
    ratio = middle["monitor"] / middle["minimal"]
    print(f"ratio    {ratio:6.2f}     (allowed {ALLOWED})")
    raise SystemExit(ratio > ALLOWED)


def _fill(home: Path) -> None:
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
