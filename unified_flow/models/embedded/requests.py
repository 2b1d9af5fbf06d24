"""What is asked of a tool in plain words: to read a web page, to remember something."""

from __future__ import annotations

import re
from functools import cache

from unified_flow.lib.text.lexicon import any_language, lexicons
from unified_flow.tools.builtin.internet_research import MAX_URLS
from unified_flow.tools.builtin.internet_research import NAME as RESEARCH
from unified_flow.tools.builtin.remember import REMEMBER, to_remember

_URL = re.compile(r"\bhttps?://[^\s<>\"'`“”)\]]+", re.IGNORECASE)
_ENDS = ".,;:!?"
_OPENING = re.compile(r"\W*")


@cache
def _left_over() -> re.Pattern[str]:
    """What is left of "According to URL, …", "Read URL and …", "What does URL say about …"."""
    every = any_language()
    return re.compile(
        rf"^\W*(?:{every.please}\s+)?"
        rf"(?:{every.page}\b[\s,:;.]*(?:{every.conjunction}\s+)?"
        rf"|(?P<what>{every.what})\s+(?:{every.do}\s+)?{every.says}\s+{every.about})",
        re.IGNORECASE,
    )


def pages_to_read(question: str) -> tuple[list[str], str] | None:
    """(addresses, what is asked of them), only if it asks to read what it names."""
    urls = [url.rstrip(_ENDS) for url in _URL.findall(question)]
    rest = " ".join(_URL.sub(" ", question).split())
    if not urls or not any(each.read_page.search(rest) for each in lexicons()):
        return None
    asked = _left_over().sub(lambda match: match["what"] or "", rest).strip()
    return list(dict.fromkeys(urls))[:MAX_URLS], asked


def asks_of_the_asker(question: str) -> bool:
    """Whether it is about the person who asks; "how do I …" is about the thing."""
    opening = _OPENING.match(question)
    start = opening.end() if opening else 0
    how = (each.asks["manner"] for each in lexicons() if "manner" in each.asks)
    return any(each.asker.search(question) for each in lexicons()) and not any(
        pattern.match(question, start) for pattern in how
    )


def asks_what_is_remembered(question: str) -> bool:
    """Whether it asks for all that is known of the person who asks."""
    return any(each.memories.match(question) for each in lexicons())


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
