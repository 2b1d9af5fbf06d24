"""Manual pages (roff with the macros man or mdoc): what they show, line for line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unified_flow.lib.sandbox import Section
from unified_flow.retrieval.formats import words_of
from unified_flow.retrieval.formats.chunk import Heading, Trail, outlined

EXTENSIONS = frozenset({".man", ".mdoc", ".roff"})
_EVIDENCE = (re.compile(r"^\.(?:TH|Dt) ", re.MULTILINE), re.compile(r"^\.S[Hh] ", re.MULTILINE))
_REQUEST = re.compile(r"['.][ \t]*([^\s\\]*)(.*)")
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|\S)+)')
_ESCAPE = re.compile(
    r"\\(?:\".*|[fmF](?:\[[^\]]{0,50}\]|\(..|.)|s[-+]?\d+|\*?(?:\[([^\]]{0,50})\]|\((..))|\*(.)|(.)|\Z)"
)
_WORDS = words_of("manual_page")
_SILENT = frozenset("&|^/,%:cdupz{}")  # escapes that show nothing
_MDOC = re.compile(rf"(?<!\S)(?:{'|'.join(sorted(_WORDS['mdoc']))})(?:\s|\Z)")


def is_manual_page(text: str) -> bool:
    return all(each.search(text) for each in _EVIDENCE)


def sections(text: str) -> Iterator[Section]:
    lines = text.split("\n")
    shown = [""] * len(lines)
    headings: list[Heading] = []
    root = until = code = before = after = ""
    for number, line in enumerate(lines):
        request = _REQUEST.match(line)
        macro, said = request.groups() if request else ("", line)
        words = [_plain(quoted or word) for quoted, word in _ARGUMENT.findall(said.split('\\"')[0])]
        if until:  # nothing is shown
            until = "" if line.rstrip().endswith(until) else until
        elif macro in _WORDS["ends"] or (request and said.count("\\{") > said.count("\\}")):
            until = _WORDS["ends"].get(macro, "\\}")
        elif macro in ("TH", "Dt"):
            root = f"{words[0]}({words[1]})" if len(words) > 1 else said.strip()
        elif macro in _WORDS["headings"]:
            shown[number] = " ".join(words)
            headings.append(Heading(shown[number], _WORDS["headings"][macro], number, number + 1))
        elif code and macro == code:
            shown[number], code = "```", ""
        elif macro in _WORDS["code"] and not code and (macro != "Bd" or "-literal" in words):
            shown[number], code = "```", _WORDS["code"][macro]
        elif macro == "TP":
            after = ":"  # of the tag, in the next line
        elif macro in ("IP", "It") and not "".join(words[:1]).strip("•*-"):
            before = "* "
        else:
            if not request:
                text = _plain(line).replace("\t", " | ")
            elif macro in ("IP", "It"):
                text = f"{words[0] if macro == 'IP' else _options(words)}:"
            elif _MDOC.match(macro):
                text = _options([macro, *words])
            else:
                text = _WORDS["fonts"][macro].join(words) if macro in _WORDS["fonts"] else ""
            if text:
                shown[number] = f"{before}{text}{after}"
                before = after = ""
    yield from outlined(shown, headings, Trail(root))


def _plain(text: str) -> str:
    return _ESCAPE.sub(_shown, text) if "\\" in text else text


def _shown(match: re.Match[str]) -> str:
    name = match[1] or match[2] or match[3] or match[4] or ""
    if name in _SILENT:
        return ""
    shown: str = _WORDS["characters"].get(name, name if match[4] else "")
    return shown


def _options(words: list[str]) -> str:
    said = _MDOC.sub("", re.sub(r"(?<!\S)Fl\s+(?=\S)", "-", " ".join(words)))
    return re.sub(r"\s+(?=[.,:;)](?:\s|\Z))", "", said)
