"""Running text of reStructuredText as a reader sees it: roles, links, substitutions, emphasis.

Text keeps its line breaks: what a link loses is made up for by breaking its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from unified_flow.retrieval.formats.chunk import Heading

_REPLACEMENT = re.compile(r"\.\. \|(?P<name>[^|]+)\|\s+replace::\s*(?P<text>.*)")
_TARGET = re.compile(r"_(?P<name>`[^`]+`|(?:\\:|[^:`])+):")
_NUMBERED = {"pep": "PEP ", "rfc": "RFC ", "ticket": "#", "issue": "#", "gh": "#"}
_CALLED = frozenset(("func", "meth"))
# Each alternative begins with its mark, which makes the search four times as fast, and none looks
# further than it is worth, so that a text of nothing but marks takes no time.
_INLINE = re.compile(
    r"``(?<!```)(?P<literal>[^\s`](?:.{0,1000}?\S)??)``"
    r"|:(?P<role>[A-Za-z][\w:.+-]{0,60}):`(?P<said>[^`]+)`"
    r"|`(?<![\w`]`)(?P<phrase>[^`\s](?:[^`]*[^`\s])?)`(?P<link>__?)?"
    r"|_`(?P<defined>[^`]+)`"
    r"|\*\*(?<![\w*]\*\*)(?P<bold>[^\s*](?:.{0,1000}?\S)??)\*\*"
    r"|\*(?<![\w*]\*)(?P<emphasis>[^\s*](?:[^*]*[^\s*])?)\*(?!\w)"
    r"|\|(?<![\w|]\|)(?P<replaced>[^\s|](?:[^|]*[^\s|])?)\|(?:__?)?(?!\w)"
    r"|(?P<note>\[(?:\d+|#[\w-]*|\*|[A-Za-z][\w.-]*)\])_"
    r"|\\(?P<escaped>[\s\S])",
    re.DOTALL,
)
_MARKS = re.compile(r"[`*|\\]|_(?!\w)")
_NAME = re.compile(r"(?<![\w`])([A-Za-z0-9](?:[\w.+-]{0,80}[A-Za-z0-9])?)(__?)(?![\w`])")
_ALIAS = re.compile(r"_\w+\.(?=\w)")  # of a module, not shown
# Punctuation that a link's target pushed to a line of its own.
_STRAY = re.compile(r"\n([ \t]*)([.,;:!?)]+)")


class Names:
    """What a document says of its own names: replacements, link targets, the titles of labels."""

    def __init__(self, lines: Sequence[str], headings: Iterable[Heading]) -> None:
        self._replacements: dict[str, str] = {}
        self._targets: set[str] = set()
        self._labels: dict[str, str] = {}
        titles = {heading.start: heading.title for heading in headings}
        waiting: list[str] = []  # labels right above a title
        for number, line in enumerate(lines):
            if number in titles:
                self._labels |= dict.fromkeys(waiting, titles[number])
            elif not line.strip():
                continue
            elif ".. _" in line and (target := _TARGET.match(line.lstrip()[3:])):
                waiting.append(target["name"].strip("`").casefold())
                self._targets.add(waiting[-1])
                continue
            elif line.startswith("__ "):
                self._targets.add("_")
            elif found := _REPLACEMENT.match(line.strip()):
                self._replacements[found["name"]] = found["text"]
            waiting = []

    def inline(self, text: str) -> str:
        """Running text without its marks, with as many lines."""
        if not _MARKS.search(text):
            return text
        shown = _INLINE.sub(self._shown, text)
        if self._targets and "_" in shown:
            shown = _NAME.sub(self._named, shown)
        return _STRAY.sub(r"\2\n\1", shown)

    def _shown(self, match: re.Match[str]) -> str:
        if match["literal"]:
            return f"`{match['literal']}`"
        if match["role"]:
            return self.role_text(match["role"].rpartition(":")[2], match["said"])
        if match["phrase"]:
            return _linked(match["phrase"]) if match["link"] else match["phrase"]
        if match["bold"]:
            return self.inline(match["bold"])
        if match["replaced"]:
            return self._replacements.get(match["replaced"], match["replaced"])
        if match["note"]:
            return match["note"] if match["note"][1:-1].isalnum() else ""
        if match["escaped"]:
            return match["escaped"].lstrip(" ")
        return match["emphasis"] or match["defined"]

    def _named(self, match: re.Match[str]) -> str:
        """The name of a link whose target stands elsewhere in the document."""
        target = "_" if match[2] == "__" else match[1].casefold()
        return match[1] if target in self._targets else match[0]

    def role_text(self, role: str, said: str) -> str:
        if said.endswith(">"):
            return _linked(said)
        if role in _NUMBERED and said[:1].isdigit():
            return _NUMBERED[role] + said
        if role == "ref":
            return self._labels.get(said.casefold()) or re.sub(r"[-_:]+", " ", said)
        if role == "doc":
            return said.strip("/")
        said = said.removeprefix("!")
        if said.startswith("~"):
            said = said.rpartition(".")[2].removeprefix("~")
        said = _ALIAS.sub("", said, 1) if said[0] == "_" else said.lstrip(".")
        return said + ("()" if role in _CALLED and not said.endswith(")") else "")


def _linked(said: str) -> str:
    """The text of `text <target>`, on as many lines."""
    text, opened, target = said.rpartition("<")
    return linked(said, text.rstrip() or target[:-1] if opened and target[-1:] == ">" else said)


def linked(source: str, shown: str) -> str:
    """What a link shows, on as many lines as its source."""
    missing = source.count("\n") - shown.count("\n")
    if missing <= 0:
        return shown
    *first, last = shown.rsplit(" ", 1)  # a line that is left empty would end the paragraph
    return "".join(first) + "\n" * missing + last if first else shown + "\n" * missing


_NO_NAMES = Names((), ())


def role_text(role: str, said: str) -> str:
    """What a role shows, in a document of which nothing else is known."""
    return _NO_NAMES.role_text(role.rpartition(":")[2], said)


def plain_title(title: str) -> str:
    return _NO_NAMES.inline(title).replace("`", "").strip()
