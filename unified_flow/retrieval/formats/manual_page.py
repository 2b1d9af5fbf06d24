"""Manual pages (roff with the macros man or mdoc): what they show, line for line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unified_flow.retrieval.formats.chunk import Heading, Section, outlined

EXTENSIONS = frozenset({".man", ".mdoc", ".roff"})
_EVIDENCE = (re.compile(r"^\.(?:TH|Dt) ", re.MULTILINE), re.compile(r"^\.S[Hh] ", re.MULTILINE))
_REQUEST = re.compile(r"['.][ \t]*([^\s\\]*)(.*)")
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|\S)+)')
_ESCAPE = re.compile(
    r"\\(?:\".*|[fmF](?:\[[^\]]{0,50}\]|\(..|.)|s[-+]?\d+|\*?(?:\[([^\]]{0,50})\]|\((..))|\*(.)|(.)|\Z)"
)
_CHARACTERS = {
    "aq": "'", "cq": "'", "oq": "'", "dq": '"', "lq": '"', "rq": '"', "R": "®", "co": "©",
    "ha": "^", "ti": "~", "rs": "\\", "e": "\\", "bu": "•", "em": "—", "en": "–", "->": "→",  # noqa: RUF001
    "ga": "`", "hy": "-", "mi": "-", "~": " ", "0": " ", "t": " ",
}  # fmt: skip
_SILENT = frozenset("&|^/,%:cdupz{}")  # escapes that show nothing
_HEADINGS = {"SH": 1, "Sh": 1, "SS": 2, "Ss": 2}
# Macros that choose fonts, with what stands between their arguments.
_FONTS = dict.fromkeys(("B", "I", "R", "SM", "SB", "UR", "MT"), " ") | dict.fromkeys(
    ("BR", "BI", "IB", "IR", "RB", "RI"), ""
)
# What ends the lines that show nothing: definitions, and the formats of a table's columns.
_ENDS = {"de": "..", "de1": "..", "am": "..", "ig": "..", "TS": "."}
_CODE = {"nf": "fi", "EX": "EE", "Bd": "Ed"}
# Macros of mdoc within a line: they choose fonts, and `Fl` writes the dash of an option.
_MDOC = re.compile(
    r"(?<!\S)(?:Ad|An|Ao|Ac|Ap|Aq|Ar|At|Bq|Bx|Cd|Cm|Dl|Do|Dc|Dq|Dv|Em|Er|Ev|Fa|Fn|Ft|Fx|Ic|In|Li"
    r"|Lk|Ms|Mt|Nd|Nm|No|Ns|Oc|Oo|Op|Pa|Pf|Pq|Ql|Qq|Sq|St|Sx|Sy|Tn|Va|Vt|Xr)(?:\s|\Z)"
)


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
        elif macro in _ENDS or (request and said.count("\\{") > said.count("\\}")):
            until = _ENDS.get(macro, "\\}")
        elif macro in ("TH", "Dt"):
            root = f"{words[0]}({words[1]})" if len(words) > 1 else said.strip()
        elif macro in _HEADINGS:
            shown[number] = " ".join(words)
            headings.append(Heading(shown[number], _HEADINGS[macro], number, number + 1))
        elif code and macro == code:
            shown[number], code = "```", ""
        elif macro in _CODE and not code and (macro != "Bd" or "-literal" in words):
            shown[number], code = "```", _CODE[macro]
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
                text = _FONTS[macro].join(words) if macro in _FONTS else ""
            if text:
                shown[number] = f"{before}{text}{after}"
                before = after = ""
    yield from outlined(shown, headings, root)


def _plain(text: str) -> str:
    return _ESCAPE.sub(_shown, text) if "\\" in text else text


def _shown(match: re.Match[str]) -> str:
    name = match[1] or match[2] or match[3] or match[4] or ""
    if name in _SILENT:
        return ""
    return _CHARACTERS.get(name, name if match[4] else "")


def _options(words: list[str]) -> str:
    said = _MDOC.sub("", re.sub(r"(?<!\S)Fl\s+(?=\S)", "-", " ".join(words)))
    return re.sub(r"\s+(?=[.,:;)](?:\s|\Z))", "", said)
