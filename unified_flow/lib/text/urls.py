"""Web addresses in text and in the arguments of a call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urldefrag, urlsplit

URL = re.compile(r"\bhttps?://[^\s<>\"'`“”)\]]+", re.IGNORECASE)
_AFTER = ".,;:!?"  # the sentence's, not the address's


def urls_in(text: str) -> list[str]:
    return [url.rstrip(_AFTER) for url in URL.findall(text)]


def urls_of(value: Any) -> Iterator[str]:
    """Those in every text of a JSON-able value."""
    match value:
        case str():
            yield from urls_in(value)
        case Mapping():
            for each in value.values():
                yield from urls_of(each)
        case list() | tuple():
            for each in value:
                yield from urls_of(each)


def host_of(url: str) -> str:
    """As names are compared; "" for what is no address."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def without_fragment(url: str) -> str:
    """What is sent for it."""
    return urldefrag(url).url
