"""Our commands as processes of their own: real arguments, pipes, signals and exit codes, without
the second that each would take to load. `run` and `Process` are used as `subprocess.run` and
`subprocess.Popen` are, for `python -m`, `python -c`, scripts and the installed commands. What a
fresh Python does is for tests that are about that: start-up, its options, the encoding of its
streams."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
INSTALLED = {
    str(BIN / name): ["-m", name.replace("-", "_")]
    for name in ("unified-flow", "interventions", "monitor")
}


def address() -> str:
    """Of the forking process, which runs then: in Linux's abstract namespace, after its NUL."""
    return _forking().getpeername()[1:].decode()


@cache
def _forking() -> socket.socket:
    """What the forking process is asked on; it is one for all workers, and ends when each of them
    has closed its own."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
    address = f"\0tests of unified-flow {run}"
    asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    while asking.connect_ex(address):  # nobody listens there
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            try:
                listening.bind(address)
            except OSError:  # another worker begins to
                continue
            listening.listen()
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.servers.forking", str(listening.fileno())],
                pass_fds=[listening.fileno()],
                cwd=REPOSITORY,
                start_new_session=True,  # Ctrl-C is for the tests
            )
            atexit.register(process.wait)
    atexit.register(asking.close)
    return asking


class Process(subprocess.Popen[Any]):
    """Forked, not started anew; else as its base, whose three steps with the system it replaces."""

    def _execute_child(self, args: Any, *more: Any) -> None:
        names = subprocess.Popen._execute_child.__code__.co_varnames[2 : 2 + len(more)]
        given = dict(zip(names, more, strict=True))
        assert not any(given[name] for name in ("preexec_fn", "pass_fds", "shell"))
        first, *words = map(str, args)
        words = [*INSTALLED.get(first, []), *words]
        assert words[0] in ("-m", "-c", "-u") or words[0].endswith(".py"), args
        request = {
            "words": words,
            "cwd": os.fspath(given["cwd"] or Path.cwd()),
            "env": {**os.environ} if given["env"] is None else given["env"],
            "new_session": given["start_new_session"],
        }
        inner = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        streams = [number if fd == -1 else fd for number, fd in enumerate(inner)]
        self._told, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            message = json.dumps(request).encode()
            socket.send_fds(_forking(), [message], [*streams, theirs.fileno()])
        self._child_created = True
        self._close_pipe_fds(*(given[name] for name in _PIPES))  # type: ignore[attr-defined]
        self.pid = int(self._told.recv(100))

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        return self._wait(0.0)

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            self._told.settimeout(timeout)
            try:
                status = self._told.recv(100)
            except (BlockingIOError, TimeoutError):
                if not timeout:
                    return None
                raise subprocess.TimeoutExpired(self.args, timeout) from None
            self.returncode = os.waitstatus_to_exitcode(int(status))
            self._told.close()
        return self.returncode


_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


def run(
    args: Any,
    *,
    input: Any = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **more: Any,
) -> subprocess.CompletedProcess[Any]:
    if capture_output:
        more |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        more["stdin"] = subprocess.PIPE
    with Process(args, **more) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done
