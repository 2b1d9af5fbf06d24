"""Secrets inside text, found by form and by the name before them: tokens, flags, headers."""

from __future__ import annotations

import re

from interventions.secrets.issued import mask_tokens
from interventions.secrets.names import MASK, NameKind, hides, name_kind, words
from interventions.secrets.prose import mask_stated

_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}(?:KEY|CERTIFICATE|MESSAGE)[A-Z0-9 ]{0,20}-----"
    r".*?(?:-----END [A-Z0-9 ]{1,60}-----|\Z)",
    re.DOTALL,
)
_URL_CREDENTIALS = re.compile(r"(?<=://)[^\s/@:\"'<>]{0,200}:[^\s/\"'<>]{1,200}(?=@)")
_URL_TOKEN_USER = re.compile(r"(?<=://)[A-Za-z0-9_\-]{20,200}(?=@)")

_MASK_START = MASK[:-1]

_BEARER = re.compile(r"\b(Bearer|Basic|Digest|Token)(\s+)[A-Za-z0-9._~+/\-]{8,}=*", re.IGNORECASE)
_PARAMETER = r"[\w\-.$!#%&*+^|~]++=(?:\"[^\"\n]*+\"?|[^\s,;\"']*+)"
_PARAMETERS = rf"{_PARAMETER}(?:[ \t]*+[,;][ \t]*+{_PARAMETER})*+"
_DIGEST = re.compile(rf"\b(?P<key>Digest)(?P<join>[ \t]{{1,3}}){_PARAMETERS}", re.IGNORECASE)

# After `%` come two digits that are no part of the name: `%3Fpassword%3D`.
_NAME = re.compile(
    r"(?<![\w.\-])(?:(?<=%)[0-9A-Fa-f]{2})?+(?P<key>[\w.\-]++)"
    r"(?:\\{0,7}[\"']|%(?:25)*+2[27])?[ \t]{0,3}"
    r"(?P<sign>:=|=>|=|:|%(?:25)*+3[DdAa])[ \t]{0,3}(?:\[[ \t]{0,3}(?=[\"'\\]))?"
)
_VALUE = re.compile(
    r"[bfru]?\"(?:[^\"\\\n]|\\.)*+\"?|[bfru]?'(?:[^'\\\n]|\\.)*+'?"
    r"|(?P<mark>\\{1,7}[\"'])(?:(?!(?<!\\)(?P=mark))[^\n])*+(?P=mark)?"
    r"|[^\s\"'&,;)}\]]++"
)
# `('password', 'hunter2')`, and `'--token', 'hunter2'` of a command line.
_PAIR = re.compile(
    r"(?:[(\[][ \t]{0,3}(?P<open>b?\\{0,7}[\"'])(?P<key>[\w.\-]{2,80})\\{0,7}[\"'],[ \t]{0,3}"
    r"(?P<before>b?\\{0,7}[\"'])(?P<value>[^\"'\n\\]*+)(?P<after>\\{0,7}[\"'],?[ \t]{0,3}[)\]]))"
    r"|(?:[\"'](?P<flag>--[\w\-]{2,80})\\{0,7}[\"'],[ \t]{0,3}"
    r"(?P<quote>\\{0,7}[\"'])(?P<given>[^\"'\n\\]*+))"
)
# `{"name": "password", "value": "hunter2"}`
_RECORD = re.compile(
    r"(?P<head>[\"'](?:name|key|header|field)\\{0,7}[\"'][ \t]{0,3}:[ \t]{0,3}\\{0,7}[\"']"
    r"(?P<key>[\w.\-]{2,80})\\{0,7}[\"'],\s{0,8}\\{0,7}[\"']values?\\{0,7}[\"'][ \t]{0,3}:"
    r"[ \t]{0,3}\\{0,7}[\"'])(?P<value>[^\"'\n\\]*+)",
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"(?<![\w\-])--(?P<key>[A-Za-z][\w\-]{1,60}+)[ \t]{1,3}"
    r"(?P<value>\"[^\"\n]*+\"?|'[^'\n]*+'?|[^\s\"'\-<$\[,;][^\s\"',;]*+)"
)
_USER = re.compile(
    r"(?<![\w\-])(?P<head>(?:-[uU]|--user|--proxy-user)[ \t=]{0,3}[\"']?[^\s:\"'/=]{1,100}:)"
    r"(?P<value>(?![0-9]{1,6}\b)(?!\[redacted)[^\s\"']+)"
)
_HEADER = re.compile(
    r"(?P<start>^[ \t><*]{0,8})?(?P<key>\b(?:proxy-)?authorization|\b(?:set-)?cookie)"
    r"(?P<join>\\{0,7}[\"']?[ \t]{0,3}(?P<sign>[:=])[ \t]{0,3})",
    re.IGNORECASE | re.MULTILINE,
)
# With no line of its own a header's value is its parameters, or a scheme and one word.
_HEADER_VALUE = re.compile(
    rf"(?:[A-Za-z][\w\-]{{0,40}}[ \t]{{1,3}})?+{_PARAMETERS}"
    r"|[^\s\"'\\]++(?:[ \t]{1,3}[^\s\"'\\,;)}\]]++)?"
)
_LINE = re.compile(r"[^\n]+")
# An expression in a line of source code shows where a secret comes from, not the secret.
_EXPRESSION = re.compile(r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]\w*(?:\.\w+)+|None\b|True\b|False\b")
_PLAIN_WORD = re.compile(r"[A-Za-z]+\Z|[^\w]+\Z")
# `csrf.txt:12` is a place in a file.
_FILE = re.compile(
    r"\.(?:c|cfg|conf|cpp|css|go|h|html|ini|java|js|json|log|md|py|rb|rs|rst|sh|toml|ts|txt|ya?ml)\Z"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]*tokens?[A-Za-z_]*\Z")
_PROSE = words("after_a_name")


def scrub(text: str) -> str:
    if len(text) < 6:
        return text
    if "-----BEGIN" in text:
        text = _PEM.sub(MASK, text)
    if "://" in text and "@" in text:
        text = _URL_CREDENTIALS.sub(MASK, text)
        text = _URL_TOKEN_USER.sub(MASK, text)
    lowered = text.lower()
    if "authorization" in lowered or "cookie" in lowered:
        text = _mask_headers(text)
    if "digest" in lowered:
        text = _DIGEST.sub(rf"\g<key>\g<join>{MASK}", text)
    if any(word in lowered for word in ("bearer", "basic", "digest", "token")):
        text = _BEARER.sub(_mask_scheme, text)
    text = mask_tokens(text)
    if "-u" in lowered:
        text = _USER.sub(rf"\g<head>{MASK}", text)
    if "--" in text:
        text = _FLAG.sub(_mask_flag, text)
    if "'," in text or '",' in text:
        text = _PAIR.sub(_mask_pair, text)
        if "value" in lowered:
            text = _RECORD.sub(_mask_record, text)
    if "=" in text or ":" in text or "%" in text:
        text = _mask_assignments(text)
    return mask_stated(text, lowered)


def _mask_scheme(match: re.Match[str]) -> str:
    secret = match[0][len(match[1]) + len(match[2]) :]
    prose = match[1].lower() != "bearer" and secret.isalpha()
    return match[0] if prose else f"{match[1]}{match[2]}{MASK}"


def _mask_flag(match: re.Match[str]) -> str:
    value = match["value"]
    if value.lower() in _PROSE or not _is_secret(match["key"], value.strip("\"'")):
        return match[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{match[0][: -len(value)]}{quote}{MASK}{quote}"


def _mask_pair(match: re.Match[str]) -> str:
    group = "value" if match["key"] else "given"
    value = match[group]
    if value.startswith("--") or not _is_secret(match["key"] or match["flag"], value):
        return match[0]
    at = match.start()
    return match[0][: match.start(group) - at] + MASK + match[0][match.end(group) - at :]


def _mask_record(match: re.Match[str]) -> str:
    return match["head"] + MASK if _is_secret(match["key"], match["value"]) else match[0]


def _is_secret(name: str, value: str) -> bool:
    """False for what is masked already."""
    return bool(value) and not value.startswith(_MASK_START) and hides(name_kind(name), value)


def _mask_headers(text: str) -> str:
    parts: list[str] = []
    done = 0
    for name in _HEADER.finditer(text):
        at = name.end()
        if name.start() < done or text.startswith(_MASK_START, at):
            continue
        if text[at : at + 1] in ("'", '"', "\\", "\n", "") or text[at : at + 2] in ("b'", 'b"'):
            continue
        if name["sign"] == "=" and name["join"][-1].isspace() and _EXPRESSION.match(text, at):
            continue
        own_line = name["start"] is not None and name["sign"] == ":" and "'" not in name["join"]
        own_line = own_line and '"' not in name["join"]
        value = (_LINE if own_line else _HEADER_VALUE).match(text, at)
        if value is None or not value[0].strip():
            continue
        parts += [text[done:at], MASK]
        done = value.end()
    return "".join([*parts, text[done:]]) if parts else text


def _mask_assignments(text: str) -> str:
    parts: list[str] = []
    done = 0
    for name in _NAME.finditer(text):
        if name.start() < done:
            continue
        kind = _kind_of(text, name)
        if kind is NameKind.PLAIN:
            continue
        value = _VALUE.match(text, name.end())
        if value is None or _is_harmless(name, kind, value[0]):
            continue
        mark = value["mark"] or ""
        if not mark:
            mark = value[0][0] if value[0][0] in "\"'" else value[0][1:2]
            mark = mark if mark in ("'", '"') else ""
        parts += [text[done : name.end()], mark, MASK, mark]
        done = value.end()
    return "".join([*parts, text[done:]]) if parts else text


def _kind_of(text: str, name: re.Match[str]) -> NameKind:
    """A `\\n` written out before a name looks like a letter of it."""
    kind = name_kind(name["key"])
    at = name.start("key")
    if kind is NameKind.PLAIN and at and text[at - 1] == "\\" and name["key"][0] in "nrt":
        return name_kind(name["key"][1:])
    return kind


def _is_harmless(name: re.Match[str], kind: NameKind, value: str) -> bool:
    """Whether what follows a secret's name is no secret: prose, source code, a measure, a mask."""
    bare = value.strip("\"'\\")
    if bare in ("", "***") or bare.startswith(_MASK_START):
        return True
    if not hides(kind, bare.strip("[({ ")):
        return True
    if bare != value:
        return False
    source = name[0][-1].isspace() or kind is not NameKind.SECRET
    if source and (_EXPRESSION.match(value) or value in ("[", "{", "(")):
        return True
    if kind is not NameKind.SECRET and _IDENTIFIER.match(value):
        return True
    if name["sign"] != ":":
        return False
    if value.rstrip(":.").isdigit() and _FILE.search(name["key"]):
        return True
    if name[0][-1].isspace() and value.lower() in _PROSE:
        return True
    # "unexpected token: comma" is prose; "password: hunter2" is not.
    return name["key"].lower() in ("token", "tokens") and _PLAIN_WORD.match(value) is not None
