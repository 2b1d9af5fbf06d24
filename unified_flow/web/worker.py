"""The process that reads HTML and JSON: what never ends, or takes all memory, ends here.

The page in UTF-8 on its input; on its output JSON {title, text} or {reason}. Arguments: `html` or
`json`, the memory it may use, in bytes, and the seconds it may live. Opens no file and no
connection.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import warnings

from unified_flow.web import MAX_CHARS
from unified_flow.web.markdown import markdown

MAX_TITLE = 500
MOST_GROWTH = 10  # times what came: depth costs a server nothing, and is indented


def main() -> None:
    warnings.simplefilter("ignore")
    kind, memory, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.alarm(seconds)  # also when nobody waits for it any more
    page = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        title, text = markdown(page) if kind == "html" else ("", laid_out(page))
        answer = json.dumps({"title": title[:MAX_TITLE], "text": text})
        if len(text) > MAX_CHARS:
            answer = json.dumps({"reason": "it is more text than any page holds"})
    except MemoryError:
        os._exit(3)
    except RecursionError:
        answer = json.dumps({"reason": "its elements lie too deep in one another"})
    except Exception as exc:  # noqa: BLE001 -- whatever a library does with a broken page
        answer = json.dumps({"reason": f"broken: {type(exc).__name__}: {exc}"[:200]})
    sys.stdout.write(answer)


def laid_out(page: str) -> str:
    """JSON with a line for each value; as it came if it is none, or would grow without measure."""
    most = min(MAX_CHARS, MOST_GROWTH * len(page))
    parts, length = [], 0
    try:
        for part in json.JSONEncoder(indent=1, ensure_ascii=False).iterencode(json.loads(page)):
            parts.append(part)
            length += len(part)
            if length > most:
                return page
    except (ValueError, RecursionError):
        return page  # lines of JSON, or what only calls itself so
    return "".join(parts)


if __name__ == "__main__":
    main()
