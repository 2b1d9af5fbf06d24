"""A process that has our commands loaded and forks one for each request, until all who have
connected to its socket have closed their end. It has one thread and keeps nothing open, so that
what it forks begins as one that Python starts does: with its own arguments, environment, folder,
standard streams and end. It has asked one question: what is computed once in a process, such as
regular expressions and schemas, costs twice as much as the rest of a turn.

A request is one message: the JSON of {"words", "cwd", "env", "new_session"}, the words being those
after `python`, with four descriptors: standard input, output and error, and the socket that is told
the number of the process and then how it ended (a wait status). tests/forked.py asks.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import gc
import importlib
import importlib.metadata
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from unified_flow.flow import UnifiedFlow
from unified_flow.lib import threads

OURS = ("unified_flow", "interventions", "monitor")
THEIRS = ("_pytest.terminal", "trustme", "uvicorn.protocols.http.h11_impl")
MESSAGE_BYTES = 200_000
HUGE_BYTES, MADV_COLLAPSE = 1 << 21, 25


def load() -> None:
    for name in OURS:
        for found in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            if not found.name.endswith((".__main__", ".migrations.env")):  # these run when loaded
                importlib.import_module(found.name)
    for name in THEIRS:
        importlib.import_module(name)
    for plugin in importlib.metadata.entry_points(group="pytest11"):
        if plugin.name != "schemathesis":  # large, and only this repository's own tests use it
            plugin.load()
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(ask_in(Path(home)))
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()
    gc.collect()
    gc.freeze()
    into_huge_pages()


async def ask_in(home: Path) -> None:
    (home / "page.md").write_text("# Topics\n\nA topic is a named bus for messages.\n")
    threads.IDLE_S = 0.0
    async with UnifiedFlow.from_config(home, docs=[home]) as flow:
        assert (await flow.process("s", "What is a topic?")).response
    threads.IDLE_S = 1.0


def into_huge_pages() -> None:
    """To fork is to copy the table of pages: 14 ms of the processor, and 5 where they are huge.
    Linux older than 6.1 leaves them as they are."""
    madvise = ctypes.CDLL(None).madvise
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, access, _, _, _, *name = line.split()
        if access == "rw-p" and name in ([], ["[heap]"]):
            start, end = (int(address, 16) for address in addresses.split("-"))
            first = -(-start // HUGE_BYTES) * HUGE_BYTES
            for page in range(first, end - HUGE_BYTES + 1, HUGE_BYTES):
                madvise(ctypes.c_void_p(page), ctypes.c_size_t(HUGE_BYTES), MADV_COLLAPSE)


def serve(listening: socket.socket) -> dict[str, Any]:
    """Returns in what was forked, with what it is to do."""
    with selectors.DefaultSelector() as events:
        events.register(listening, selectors.EVENT_READ)
        connected = 0
        while True:
            for key, _ in events.select():
                if key.data:
                    _tell_the_end(*key.data)
                    events.unregister(key.fileobj)
                    os.close(key.fd)
                    continue
                if key.fileobj is listening:
                    events.register(listening.accept()[0], selectors.EVENT_READ)
                    connected += 1
                    continue
                assert isinstance(key.fileobj, socket.socket)
                message, fds, _, _ = socket.recv_fds(key.fileobj, MESSAGE_BYTES, 4)
                if not message:
                    events.unregister(key.fileobj)
                    key.fileobj.close()
                    connected -= 1
                    continue
                pid = os.fork()
                if pid == 0:
                    for number, fd in enumerate(fds[:3]):
                        os.dup2(fd, number)
                    os.closerange(3, max(*fds, *events.get_map()) + 1)
                    events.close()
                    listening.detach()
                    return dict(json.loads(message))
                told = socket.socket(fileno=fds.pop())
                for fd in fds:
                    os.close(fd)
                _tell(told, pid)
                events.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, told))
            if not connected:
                os._exit(0)


def _tell_the_end(pid: int, told: socket.socket) -> None:
    with told:
        _tell(told, os.waitpid(pid, 0)[1])


def _tell(told: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # the worker that asked is gone: the others are not
        told.send(str(number).encode())


def begin(words: list[str], cwd: str, env: dict[str, str], new_session: bool) -> None:
    if new_session:
        os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    if unbuffered := words[0] == "-u":
        del words[0]
    for fd, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        was = getattr(sys, name)
        stream = open(fd, mode, encoding=was.encoding, errors=was.errors, closefd=False)  # noqa: SIM115
        stream.reconfigure(
            line_buffering=fd == 2 or os.isatty(fd), write_through=unbuffered or was.write_through
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    how, *rest = words
    if how == "-m":
        sys.argv = rest
        sys.path[0] = cwd
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    else:
        sys.argv = words
        sys.path[0] = str(Path(how).parent)
        runpy.run_path(how, run_name="__main__")


def end(raised: BaseException | None) -> NoReturn:
    """What Python does at its end, but for freeing each object, which takes 0.1 s."""
    code = 0
    if isinstance(raised, SystemExit):
        code = raised.code if isinstance(raised.code, int) else int(raised.code is not None)
        if raised.code and not isinstance(raised.code, int):
            print(raised.code, file=sys.stderr)
    elif raised is not None:
        sys.excepthook(type(raised), raised, raised.__traceback__)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120
    if isinstance(raised, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code & 0xFF)


def main() -> None:
    load()
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        begin(**asked)
    except BaseException as raised:  # noqa: BLE001 - as the interpreter does
        end(raised)
    end(None)


if __name__ == "__main__":
    main()
