"""Web addresses in text and in the arguments of a call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urldefrag, urlsplit

URL = re.compile(r"\bhttps?://[^\s<>\"'`“”)\]]+", re.IGNORECASE)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+|(?<!\S)//\S+", re.IGNORECASE)
_NAMES_HOST = re.compile(r"(?:ur[il]|host(?:_?name)?|endpoint)s?\Z", re.IGNORECASE)
_NETLOC = re.compile(r"[\w.-]+(:\d+)?|\[[0-9a-f:.]+\](:\d+)?", re.IGNORECASE)
_AFTER = ".,;:!?"  # the sentence's, not the address's


def urls_in(text: str) -> list[str]:
    return [url.rstrip(_AFTER) for url in URL.findall(text)]


def addresses_of(value: Any, name: str = "") -> Iterator[str]:
    """Whatever a program could take for an address in the texts of a JSON-able value: prose ends
    one at a bracket, and a client may not. What is called url, host or endpoint need not look like
    an address."""
    match value:
        case str():
            found = _ADDRESS.findall(value)
            if value and not found and _NAMES_HOST.search(name):
                found = [f"//{value}"]
            yield from found
        case Mapping():
            for key, each in value.items():
                yield from addresses_of(each, str(key))
        case list() | tuple():
            for each in value:
                yield from addresses_of(each, name)


def host_of(url: str) -> str:
    """The host as it is compared; "" where clients could read different ones."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    plain = _NETLOC.fullmatch(parts.netloc)
    return (parts.hostname or "").rstrip(".") if plain else ""


def without_fragment(url: str) -> str:
    """The URL as it is sent."""
    return urldefrag(url).url
