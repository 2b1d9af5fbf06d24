"""A checksum at the end of each line of a journal: one that was changed is told, not gone on with.

CRC-32 of the line as it would be without it: against disks and slips of a hand, not against anybody
who means harm.
"""

from __future__ import annotations

import re
from zlib import crc32

KEY = "crc32"
_TAIL = re.compile(rb',"crc32":"([0-9a-f]{8})"\}$')


def with_sum(line: bytes) -> bytes:
    """`line` is a JSON object with at least one field."""
    return b'%s,"crc32":"%08x"}' % (line[:-1], crc32(line))


def check_sum(line: bytes, *, needed: bool) -> None:
    """Raises ValueError for a line that is not what was written, and, where each has a sum
    (`needed`), for one without."""
    found = _TAIL.search(line)
    if found is None:
        if needed:
            raise ValueError("the line has no checksum")
        return
    if int(found[1], 16) != crc32(line[: found.start()] + b"}"):
        raise ValueError("the line is not what was written: its checksum differs")
