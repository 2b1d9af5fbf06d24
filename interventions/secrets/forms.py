"""Secrets inside text: by their form, and by the name before them, whatever joins the two.

One pass looks at the words; only one that is, or ends, a secret's name is looked at with its
surroundings. How names and values are written is a table, `secrets.toml`.
"""

from __future__ import annotations

import re
from base64 import b64decode

from interventions.secrets.columns import mask_columns
from interventions.secrets.issued import mask_tokens
from interventions.secrets.names import NameKind, name_kind
from interventions.secrets.prose import stated_value
from interventions.secrets.rules import MASK, TABLE, Span, patterns, spelled, without, words
from interventions.secrets.values import (
    begins_prose,
    is_code,
    is_harmless,
    is_harmless_bare,
    is_masked,
    is_placeholder,
    is_said,
    is_sentence,
)

_WHOLE = [
    (hint, re.compile(spelled(form)))
    for hint, forms in TABLE["whole"].items()
    for form in ([forms] if isinstance(forms, str) else forms)
]
_JOINS, _TEXT = patterns("join"), patterns("text")
_VALUE = re.compile("|".join(map(spelled, TABLE["value"].values())))
_ENCODED = patterns("key")["encoded"]
_WORD = re.compile(r"[^\W\d][\w\-]*+")

_SCHEMES, _DIRECTIVES = words("schemes"), words("directives")
# Second words of a name in two: `API key: ...`.
_SECONDS = frozenset(pair.partition("-")[2] for pair in words("secret_pairs"))
_CANDIDATES = _SCHEMES | _SECONDS | {"identified"}
_WEAK, _GETTERS = tuple(words("weak")), tuple(words("getters"))
_LOOK_BACK = 80
_PASSES = 5
_SHORTEST_ENCODED = 21


def scrub(text: str) -> str:
    """What one form leaves may be all of another's value, so that it is looked at again."""
    for _ in range(_PASSES):
        clean = _scrub_once(text)
        if clean == text:
            break
        text = clean
    return text


def _scrub_once(text: str) -> str:
    if len(text) < 6:
        return text
    text = mask_tokens(text)
    if max(map(len, text.split()), default=0) > _SHORTEST_ENCODED:
        text = _ENCODED.sub(_mask_encoded, text)
    for hint, form in _WHOLE:
        if hint in text:
            text = form.sub(_mask_whole, text)
    return _mask_named(text)


def _mask_encoded(match: re.Match[str]) -> str:
    """A text in base64 that has a secret in it."""
    try:
        inner = b64decode(match[0] + "=" * (-len(match[0]) % 4)).decode()
    except ValueError:
        return match[0]
    return match[0] if scrub(inner) == inner else MASK


def _mask_whole(match: re.Match[str]) -> str:
    parts = match.groupdict()
    keep = parts.get("keep") or ""
    secret = match[0][len(keep) :]
    shown = is_masked(secret) or is_placeholder(parts.get("value") or secret)
    return match[0] if shown else keep + MASK


def _mask_named(text: str) -> str:
    encoded = "\\" in text or "%" in text
    names = {word for word in set(_WORD.findall(text)) if _is_candidate(word, encoded)}
    if not names:
        return text
    text = mask_columns(text)
    found: list[Span] = []
    before = None
    for word in _WORD.finditer(text):
        if word[0] in names and (not found or word.start() >= found[-1][1]):
            span = _secret_of(text, word, _kind_of(text, word, before))
            if span is not None and (not found or span[0] >= found[-1][1]):
                found.append(span)
        before = word
    return without(text, found)


def _is_candidate(word: str, encoded: bool) -> bool:
    if name_kind(word) is not NameKind.PLAIN or word.lower() in _CANDIDATES:
        return True
    return encoded and any(name_kind(word[n:]) is not NameKind.PLAIN for n in (1, 2))


def _kind_of(text: str, word: re.Match[str], before: re.Match[str] | None) -> NameKind:
    """A `\\n` written out before a name, and `%3F`, look like letters of it."""
    name, at = word[0], word.start()
    if at and text[at - 1] == "\\" and name[0] in "nrt":
        name = name[1:]
    elif "%" in text[max(0, at - 2) : at]:
        name = name[2 if text[at - 1] == "%" else 1 :]
    if name.lower() == "identified":  # ... BY
        return NameKind.SECRET
    kind = name_kind(name)
    if kind is not NameKind.PLAIN or before is None or name.lower() not in _SECONDS:
        return kind
    return name_kind(f"{before[0]} {name}") if text[before.end() : at] in (" ", ".") else kind


def _secret_of(text: str, word: re.Match[str], kind: NameKind) -> Span | None:
    """From where to where stands the secret that the name `word` is about."""
    name, (start, end) = word[0].lower(), word.span()
    if name in _SCHEMES and (found := _after_scheme(text, name, end)):
        return found
    if kind is NameKind.PLAIN:
        return None
    if text[max(0, start - 3) : start].rstrip("\"' ")[-1:] in (":", "="):
        # `value: ..., name: PASSWORD`, in the order of the alphabet
        earlier = _TEXT["value_before"].search(text, max(0, start - 300), start)
        if earlier is not None and not is_masked(earlier["value"]):
            return earlier.span("value")
    for how, form in _JOINS.items():
        join = form.match(text, end)
        if join is None:
            continue
        if how == "sign" and name.endswith(("authorization", "cookie")):
            found = _header_value(text, start, join)
            if found is not None:
                return found
        if _joins(text, word, kind, how, join):
            if how == "element" or (how == "record" and join[0].rstrip().endswith(">")):
                value = _TEXT["element"].match(text, join.end())
                return _unless(value is None or is_harmless(value["value"], kind), value, "value")
            return _assigned(text, word, kind, join)
    if name == "identified":
        return None
    if kind is not NameKind.SECRET or name.endswith(_WEAK):
        return stated_value(text, start, end)
    after = _TEXT["alone"].match(text, end)
    if after and not (_begins_line(text, start) or _is_before("given", text, start)):
        after = None
    return stated_value(text, start, end) or _unless(
        False, after or _TEXT["random_after"].match(text, end), "value"
    )


def _is_before(pattern: str, text: str, start: int) -> bool:
    return _TEXT[pattern].search(text, max(0, start - _LOOK_BACK), start) is not None


def _begins_line(text: str, start: int) -> bool:
    return _is_before("begins_line", text, start)


def _unless(harmless: bool, value: re.Match[str] | None, group: str | int = 0) -> Span | None:
    return None if harmless or value is None else value.span(group)


def _joins(text: str, word: re.Match[str], kind: NameKind, how: str, join: re.Match[str]) -> bool:
    """Whether what stands between a name and a text makes the text the name's value."""
    name, start = word[0].lower(), word.start()
    if how == "element":
        return _is_before("tag", text, start) or (
            join[0][0] in "\"'\\" and _is_before("field", text, start)
        )
    if how == "pair":
        return _is_before("flag", text, start) or (
            _is_before("opened", text, start) and _is_pair(text, name, kind, join.end())
        )
    if how == "call":
        return not name.startswith(_GETTERS) and not name.endswith(_WEAK)
    if how == "by":
        return name == "identified"
    if how == "literal":  # `PASSWORD '...'`; `unexpected token '}'` is none
        given = "pass" in name or "pwd" in name or name.endswith("authorization")
        return given or _is_before("flag", text, start)
    if how == "cell":
        return _is_before("begins_cell", text, start)
    if how == "blank":
        said = text[join.end() : join.end() + _LOOK_BACK].split(maxsplit=1)[0]
        by_flag = _is_before("flag", text, start) and not begins_prose(said)
        return by_flag or name in _DIRECTIVES
    return True


def _is_pair(text: str, name: str, kind: NameKind, at: int) -> bool:
    """`("password", "hunter2")`, and no list of names."""
    value = _VALUE.match(text, at)
    if value is None or not _TEXT["closed"].match(text, value.end() - 1):
        return False
    start, end = _inside_quotes(value)
    given = text[start:end]
    if (
        given.startswith("-")
        or is_harmless(given, kind)
        or (name.endswith(_WEAK) and is_said(given))
    ):
        return False
    return name_kind(given) is NameKind.PLAIN


def _after_scheme(text: str, scheme: str, end: int) -> Span | None:
    """`Bearer ...`; "basic authentication" and a challenge hold no secret."""
    value = _TEXT["scheme"].match(text, end)
    if value is None:
        return None
    secret = value["value"]
    if "=" in secret.rstrip("="):
        return _unless("response=" not in secret, value, "value")
    said = is_said(secret.rstrip("=")) and (
        scheme != "bearer" or len(secret) < 16 or not secret.isalpha()
    )
    return _unless(said, value, "value")


def _header_value(text: str, start: int, join: re.Match[str]) -> Span | None:
    at = join.end()
    if text.startswith(("\\", "{", "[", "("), at) or _TEXT["opening"].match(text, at):
        return None
    by_colon = join[0].rstrip().endswith(":")
    line = by_colon and not {"'", '"'} & set(join[0]) and _begins_line(text, start)
    value = _TEXT["line" if line else "header"].match(text, at)
    if value is None or is_masked(value[0]) or is_placeholder(value[0]):
        return None
    return _unless(not by_colon and join[0][-1].isspace() and is_code(value[0], loose=True), value)


def _assigned(text: str, word: re.Match[str], kind: NameKind, join: re.Match[str]) -> Span | None:
    value = _VALUE.match(text, join.end())
    if value is None:
        return None
    if _TEXT["opening"].match(value[0]):
        start, end = _inside_quotes(value)
        colon = join[0].split("\n")[0].rstrip().endswith(":")
        if "\n" in join[0] and colon and text[word.end()] not in "'\"":
            return None  # the first line of a block of code
        if is_harmless(text[start:end], kind):
            return None
        if more := _TEXT["replaced"].match(text, value.end()):  # by another one
            _, end = _inside_quotes(_VALUE.match(text, more.end()) or value)
        return start, end
    if value[0][0] in "[({" and value[0][1:].lstrip()[:1] in ("'", '"', "\\", "b"):
        open_list = kind is not NameKind.SECRET or value[0][0] == "{" or MASK[:-1] in value[0]
        return _unless(open_list or is_sentence(value[0]), value)
    if is_harmless_bare(value[0], kind, word[0], join[0]):
        return None
    return value.start(), _end_of_bare(text, word.start(), join[0], value)


def _inside_quotes(value: re.Match[str]) -> Span:
    opening = _TEXT["opening"].match(value[0])
    assert opening is not None
    start, end, quote = value.start() + opening.end(), value.end(), opening["quote"]
    closed = end - start >= len(quote) and value[0].endswith(quote)
    return start, end - len(quote) if closed else end


def _end_of_bare(text: str, start: int, join: str, value: re.Match[str]) -> int:
    """On a line of its own a value without quotes has more: `PASSWORD=a;b`, `password: a b`."""
    if not _begins_line(text, start):
        return value.end()
    if join == "=":
        more = _TEXT["no_space"].match(text, value.start())
        return more.end() if more else value.end()
    rest = _TEXT["rest_of_line"].match(text, value.end()) if join.startswith(":") else None
    return value.end() if rest is None or any(map(begins_prose, rest[0].split())) else rest.end()
