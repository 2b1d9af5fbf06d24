"""The process that `file.grep` searches in: a pattern that never ends is ended with it.

Run by path, without the package, so that it starts in the time of a bare interpreter. On its
input a line of JSON {pattern, ignore_case, limit}, then for each file a line with the number of
its bytes and the bytes (UTF-8). On its output a line of JSON for each match {file, line, text},
and last {searched, more}.
"""

from __future__ import annotations

import json
import re
import sys
import warnings

LINE_CHARS = 20_000  # of a line that are searched: a line of minified code is no line
SHOWN_CHARS = 500


def main() -> None:
    warnings.simplefilter("ignore")
    source, out = sys.stdin.buffer, sys.stdout
    order = json.loads(source.readline())
    search = re.compile(order["pattern"], re.IGNORECASE if order["ignore_case"] else 0).search
    left = order["limit"]
    searched = 0
    while left and (head := source.readline()):
        lines = source.read(int(head)).decode("utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            found = search(line, 0, LINE_CHARS)
            if found is None:
                continue
            text = _around(line, found.start())
            out.write(json.dumps({"file": searched, "line": number, "text": text}) + "\n")
            left -= 1
            if not left:
                break
        searched += 1
    out.write(json.dumps({"searched": searched, "more": not left}) + "\n")


def _around(line: str, start: int) -> str:
    first = max(0, start - SHOWN_CHARS // 4) if len(line) > SHOWN_CHARS else 0
    return line[first : first + SHOWN_CHARS]


if __name__ == "__main__":
    main()
