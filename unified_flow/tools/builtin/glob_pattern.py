"""Matching paths with *, ?, [...] and **, in time that does not explode."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class GlobPattern:
    """`**` stands for any number of folders, `docs/` for all that is in it; without a slash the
    pattern matches names anywhere. Upper and lower case differ.
    """

    pattern: str

    def __post_init__(self) -> None:
        parts = self.pattern.split("/")
        if self.pattern.startswith("/") or ".." in parts:
            raise ValueError("a pattern is relative and does not go up (no leading /, no ..)")
        if not self.pattern.strip() or "\0" in self.pattern:
            raise ValueError("a pattern is text such as *.md or docs/**/*.py")

    def matches(self, path: str) -> bool:
        """Keeps the set of places in the pattern that the components so far can have led to."""
        parts = self._parts
        places = self._closed({0})
        for name in path.split("/"):
            next_places: set[int] = set()
            for at in places:
                if at == len(parts):
                    continue
                part = parts[at]
                if part is None:
                    next_places |= {at, at + 1}
                elif part.match(name):
                    next_places.add(at + 1)
            places = self._closed(next_places)
            if not places:
                return False
        return len(parts) in places

    def _closed(self, places: set[int]) -> set[int]:
        """With the places behind a `**`, which may stand for no folder at all."""
        closed = set(places)
        for at in places:
            # The last component of a path is a file, so that a last `**` has something to match.
            while at < len(self._parts) - 1 and self._parts[at] is None:
                at += 1
                closed.add(at)
        return closed

    @cached_property
    def _parts(self) -> list[re.Pattern[str] | None]:
        """One expression for each component; None for `**`."""
        components = [part for part in self.pattern.split("/") if part not in ("", ".")]
        if "/" not in self.pattern:
            components = ["**", *components]
        if self.pattern.endswith("/"):
            components.append("**")
        return [
            None if part == "**" else re.compile(fnmatch.translate(part)) for part in components
        ]
