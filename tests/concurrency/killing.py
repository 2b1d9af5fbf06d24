"""Work in a child process that is killed (SIGKILL) before its n-th system call, or after a while.

ptrace(2) stops the child, with all its threads, at each system call. Whoever calls this has no
threads and no other children.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

TRACEME, SYSCALL, SET_OPTIONS, SYSCALL_INFO = 0, 24, 0x4200, 0x420E
# Tell a stop at a system call from a signal, follow new threads, and kill all if we end.
OPTIONS = 1 | 8 | 0x100000
AT_CALL = signal.SIGTRAP | 0x80
WALL = 0x40000000
ENTERS = 1

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def outcome(work: Callable[[], Any]) -> Any:
    """What `work` returns in a child of its own. Raises RuntimeError with its traceback."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "wb") as told:
            try:
                told.write(pickle.dumps((work(), "")))
            except BaseException:  # noqa: BLE001 - whatever it is, the parent raises it
                told.write(pickle.dumps((None, traceback.format_exc())))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        value, trouble = pickle.loads(told.read())
    os.waitpid(child, 0)
    if trouble:
        raise RuntimeError(trouble)
    return value


def killed_after(work: Callable[[], Any], seconds: float) -> None:
    child = _child(work)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def killed_at(work: Callable[[], Any], call: int | None) -> int:
    """How many system calls it came to. With `call` None it comes to its end. Raises OSError where
    no process may be traced."""
    child = _child(work, traced=True)
    os.waitpid(child, WALL | os.WUNTRACED)
    if libc.ptrace(SET_OPTIONS, child, None, OPTIONS) < 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise OSError(ctypes.get_errno(), "no process may be traced here")
    _ptrace(SYSCALL, child)
    calls, info = 0, ctypes.create_string_buffer(88)
    while True:
        thread, status = os.waitpid(-1, WALL)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if thread == child:
                return calls
            continue
        stopped_by, passed_on = os.WSTOPSIG(status), 0
        if stopped_by == AT_CALL:
            _ptrace(SYSCALL_INFO, thread, len(info), ctypes.addressof(info))
            if info.raw[0] == ENTERS:
                calls += 1
                if calls == call:
                    os.kill(child, signal.SIGKILL)
                    continue
        elif stopped_by not in (signal.SIGTRAP, signal.SIGSTOP):
            passed_on = stopped_by
        _ptrace(SYSCALL, thread, None, passed_on)


def _child(work: Callable[[], Any], *, traced: bool = False) -> int:
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        if traced:
            libc.ptrace(TRACEME, 0, None, None)
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            work()
        finally:
            os._exit(0)
    return child


def _ptrace(request: int, thread: int, address: int | None = None, data: int | None = None) -> None:
    if libc.ptrace(request, thread, address, data) < 0 and ctypes.get_errno() != errno.ESRCH:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
