"""What a reader does not see of HTML, and no model is shown: instructions hide there. One
definition, for files and books as for pages of the web.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

INVISIBLE = frozenset(
    """
    audio button canvas dialog embed iframe input nav noscript object script select style svg
    template textarea video
    """.split()  # noqa: SIM905
)
"""Elements that hold no part of the text."""

_HIDING = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_WHOLE = frozenset({"html", "body"})  # hidden until a script has run


def is_visible(name: str, attributes: Mapping[str, object]) -> bool:
    """`name` in lower case. The children of an invisible element are invisible too."""
    if name in INVISIBLE:
        return False
    if name in _WHOLE:
        return True
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return False
    return not _HIDING.search(str(attributes.get("style") or ""))
