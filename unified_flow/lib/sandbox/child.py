"""The process that reads strangers' documents: what never ends, or takes all memory, ends here.

It opens no file but those of its libraries, and writes none. On its input, for each document, a
line of JSON {function, bytes, timeout_s} and the bytes; on its output a line of JSON for each:
{sections} (the fields of each `Section`) or {reason}. The first argument is the memory it may use,
in bytes.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import warnings
from dataclasses import astuple
from pkgutil import resolve_name

from unified_flow.lib.sandbox import OUT_OF_MEMORY, UnusableError

MAX_CHARS = 32 * 1024 * 1024
_XML_NO_MEMORY = 2


def main() -> None:
    warnings.simplefilter("ignore")
    # What libraries print must not stand among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="surrogatepass")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _limit(resource.RLIMIT_AS, int(sys.argv[1]))
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    source = sys.stdin.buffer
    while head := source.readline():
        asked = json.loads(head)
        data = source.read(asked["bytes"])
        # Ends the process even within a library, and when its parent no longer waits.
        signal.alarm(int(asked["timeout_s"]) + 2)
        try:
            answer = _answer(asked["function"], data)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        signal.alarm(0)
        answers.write(answer + "\n")
        answers.flush()


def _limit(which: int, value: int) -> None:
    """No more than `value`, nor than what this process is held to already."""
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def _answer(function: str, data: bytes) -> str:
    found = []
    size = 0
    try:
        for part in resolve_name(function)(data):
            size += sum(map(len, part.lines)) + len(part.lines)
            if size > MAX_CHARS:
                raise UnusableError(f"more than {MAX_CHARS // 1024 // 1024} MiB of text")
            found.append(astuple(part))
    except UnusableError as exc:
        if _for_want_of_memory(exc):
            raise MemoryError from exc
        return json.dumps({"reason": str(exc)})
    except MemoryError:
        raise
    except RecursionError:
        return json.dumps({"reason": "its elements lie too deep in one another"})
    except Exception as exc:  # noqa: BLE001 -- whatever a library does with a broken file
        return json.dumps({"reason": f"broken: {type(exc).__name__}: {exc}"[:200]})
    return json.dumps({"sections": found})


def _for_want_of_memory(exc: BaseException | None) -> bool:
    """A library may pass it off as a broken file: libxml2 as a syntax error with this number."""
    while exc is not None:
        if isinstance(exc, MemoryError) or (
            isinstance(exc, SyntaxError) and getattr(exc, "code", None) == _XML_NO_MEMORY
        ):
            return True
        exc = exc.__cause__
    return False


if __name__ == "__main__":
    main()
