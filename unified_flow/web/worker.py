"""The process that reads HTML: what never ends, or takes all memory, ends here.

HTML in UTF-8 on its input; on its output JSON {title, text} or {reason}. Arguments: the memory it
may use, in bytes, and the seconds it may live. Opens no file and no connection.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import warnings

from unified_flow.web.markdown import markdown

MAX_TITLE = 500
MAX_CHARS = 16 * 1024 * 1024


def main() -> None:
    warnings.simplefilter("ignore")
    memory, seconds = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.alarm(seconds)  # also when nobody waits for it any more
    page = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        title, text = markdown(page)
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


if __name__ == "__main__":
    main()
