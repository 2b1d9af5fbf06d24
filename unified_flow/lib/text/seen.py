"""What a reader does not see of HTML, and nobody else is to be shown: instructions are planted
there. One definition, for files and books as for pages of the web.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

UNSEEN = frozenset(
    """
    audio button canvas dialog embed iframe input nav noscript object script select style svg
    template textarea video
    """.split()  # noqa: SIM905
)
"""Elements that hold no part of the text."""

_HIDING = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_WHOLE = frozenset({"html", "body"})  # hidden until a script has run


def is_seen(name: str, attributes: Mapping[str, object]) -> bool:
    """Of an element by its name in lower case; its children are as little seen as itself."""
    if name in UNSEEN:
        return False
    if name in _WHOLE:
        return True
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return False
    return not _HIDING.search(str(attributes.get("style") or ""))
