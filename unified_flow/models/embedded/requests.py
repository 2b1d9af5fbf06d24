"""What is asked of a tool in plain words: to read a web page, to remember something."""

from __future__ import annotations

import re

from unified_flow.tools.builtin.internet_research import MAX_URLS
from unified_flow.tools.builtin.internet_research import NAME as RESEARCH
from unified_flow.tools.builtin.remember import REMEMBER, to_remember

_URL = re.compile(r"\bhttps?://[^\s<>\"'`“”)\]]+", re.IGNORECASE)
_TO_READ = re.compile(
    r"\b(?:fetch|read|open|visit|browse|load|get|look\s+(?:at|into|up)|summari[sz]e|check"
    r"|according\s+to|says?|hämta|läs|öppna|besök|titta\s+på|sammanfatta|enligt|står|säger"
    r"|lis(?:ez)?|ouvre[z]?|visite[rz]?|résume[rz]?|selon|d['’]après|dit)\b"  # noqa: RUF001
    r"|阅读|打开|总结|根据",
    re.IGNORECASE,
)
# What is left of "According to URL, …", "Read URL and tell me …", "What does URL say about …".
_LEFT_OVER = re.compile(
    r"^\W*(?:please\s+)?(?:(?:fetch|read|open|visit|browse|load|get|check|summari[sz]e|according\s+to"
    r"|look\s+(?:at|into|up)|hämta|läs|öppna|besök|sammanfatta|enligt|titta\s+på|selon|d['’]après"  # noqa: RUF001
    r"|lis(?:ez)?|ouvre[z]?|visite[rz]?|résume[rz]?)\b[\s,:;.]*(?:(?:and|och|et)\s+)?"
    r"|(?P<what>what|vad|que)\s+(?:(?:does|do)\s+)?(?:says?|säger|dit)\s+(?:about|om|sur|de))",
    re.IGNORECASE,
)
_ENDS = ".,;:!?"
_ASKER = re.compile(
    r"\b(?:do|did|am|was|have)\s+I\b|\b(?:my|mine|about\s+me)\b|\b(?:har|är|var)\s+jag\b"
    r"|\b(?:min|mitt|mina)\b|\b(?:ai|suis)-je\b|\b(?:mon|ma|mes)\b",
    re.IGNORECASE,
)
_REMEMBERED = re.compile(
    r"\W*(?:(?:what|anything)\b.*\byou\s+(?:know|remember|recall)\b.*\b(?:about|of)\s+me"
    r"|vad\s+(?:vet|minns|kommer)\s+du\b.*\bom\s+mig"
    r"|(?:que|qu['’]est-ce\s+que)\b.*\b(?:sais|savez|souvien[st]|souvenez)\b.*\b(?:de|sur)\s+moi"  # noqa: RUF001
    r"|你(?:知道|记得)我(?:的)?(?:什么|哪些))\W*\Z",
    re.IGNORECASE,
)
_HOW = re.compile(r"\W*(?:how|hur|comment)\b", re.IGNORECASE)


def pages_to_read(question: str) -> tuple[list[str], str] | None:
    """(addresses, what is asked of them), only if it asks to read what it names."""
    urls = [url.rstrip(_ENDS) for url in _URL.findall(question)]
    rest = " ".join(_URL.sub(" ", question).split())
    if not urls or not _TO_READ.search(rest):
        return None
    asked = _LEFT_OVER.sub(lambda match: match["what"] or "", rest).strip()
    return list(dict.fromkeys(urls))[:MAX_URLS], asked


def asks_of_the_asker(question: str) -> bool:
    """Whether it is about the person who asks; "how do I …" is about the thing."""
    return bool(_ASKER.search(question)) and not _HOW.match(question)


def asks_what_is_remembered(question: str) -> bool:
    """Whether it asks for all that is known of the person who asks."""
    return bool(_REMEMBERED.match(question))


def asked_of_pages(question: str) -> str:
    """The question as it is put to the pages that it names, else as it is."""
    found = pages_to_read(question)
    return found[1] if found is not None and found[1] else question


__all__ = [
    "REMEMBER",
    "RESEARCH",
    "asked_of_pages",
    "asks_of_the_asker",
    "asks_what_is_remembered",
    "pages_to_read",
    "to_remember",
]
