"""Secrets inside text: by their form, and by the name before them, whatever joins the two.

One pass looks at the words; only one that is, or ends, a secret's name is looked at with its
surroundings. How names and values are written is a table, `secrets.toml`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from functools import lru_cache

from interventions.secrets.columns import mask_columns
from interventions.secrets.issued import KEY, mask_tokens
from interventions.secrets.names import NameKind, name_kind
from interventions.secrets.rules import (
    MASK,
    TABLE,
    TEXT,
    Span,
    inside_quotes,
    spelled,
    without,
    words,
)
from interventions.secrets.values import (
    begins_prose,
    is_harmless,
    is_harmless_bare,
    is_masked,
    is_placeholder,
    is_sentence,
)

_WHOLE = [
    (hint, re.compile(spelled(form)))
    for hint, forms in TABLE["whole"].items()
    for form in ([forms] if isinstance(forms, str) else forms)
]
_VALUE = re.compile("|".join(map(spelled, TABLE["value"].values())))
_WORD = re.compile(r"(?P<name>[^\W\d][\w\-]*+)")
# A `\n` written out before a name, and `%3F`, look like letters of it.
_ENCODED_WORD = re.compile(rf"(?:(?<=\\)[nrt]|(?<=%)[0-9A-Fa-f]{{2}})?{_WORD.pattern}")
# Second words of a name in two: `API key: ...`.
_SECONDS = frozenset(pair.partition("-")[2] for pair in words("secret_pairs"))
_CANDIDATES = words("schemes") | _SECONDS
_LOOK_BACK = 80
_PASSES = 5
_SHORTEST_ENCODED = 21


_KINDS = {"any": set(NameKind), "": set(NameKind) - {NameKind.PLAIN}, "secret": {NameKind.SECRET}}


class _Place:
    """Where a secret stands by its name: a row of the table, which explains the fields."""

    def __init__(
        self,
        after: str,
        before: str = "",
        name: str = "",
        kinds: str = "",
        is_no_name: bool = False,
    ) -> None:
        self.after, self.before, self.name = (
            re.compile(spelled(form)) for form in (after, before, name)
        )
        self.kinds = _KINDS[kinds]
        self.is_no_name = is_no_name


_PLACES = [_Place(**row) for row in TABLE["place"].values()]


@lru_cache(maxsize=1024)
def _places_of(name: str, kind: NameKind) -> list[_Place]:
    return [place for place in _PLACES if kind in place.kinds and place.name.match(name)]


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
        text = KEY["encoded"].sub(_mask_encoded, text)
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
    words_in = _ENCODED_WORD if "\\" in text or "%" in text else _WORD
    names = set(filter(_is_candidate, set(words_in.findall(text))))
    if not names:
        return text
    text = mask_columns(text)
    found: list[Span] = []
    before, done = None, 0
    for word in words_in.finditer(text):
        if word["name"] in names and word.start() >= done:
            span = _secret_of(text, *word.span("name"), _kind_of(text, word, before))
            if span is not None and span[0] >= done:
                found.append(span)
                done = span[1]
        before = word
    return without(text, found)


def _is_candidate(name: str) -> bool:
    return name_kind(name) is not NameKind.PLAIN or name.lower() in _CANDIDATES


def _kind_of(text: str, word: re.Match[str], before: re.Match[str] | None) -> NameKind:
    name = word["name"]
    kind = name_kind(name)
    if kind is not NameKind.PLAIN or before is None or name.lower() not in _SECONDS:
        return kind
    together = text[before.end() : word.start()] in (" ", ".")
    return name_kind(f"{before['name']} {name}") if together else kind


def _secret_of(text: str, start: int, end: int, kind: NameKind) -> Span | None:
    """From where to where stands the secret that the name from `start` to `end` is about."""
    just_before = text[max(0, start - 3) : start].rstrip("\"' ")
    if just_before.endswith((":", "=")) and kind is not NameKind.PLAIN:
        # `value: ..., name: PASSWORD`, in the order of the alphabet
        earlier = TEXT["value_before"].search(text, max(0, start - 300), start)
        if earlier is not None and not is_masked(earlier["value"]):
            return earlier.span("value")
    judged = NameKind.SECRET if kind is NameKind.PLAIN else kind
    for place in _places_of(text[start:end].lower(), kind):
        join = place.after.match(text, end)
        if not (join and place.before.search(text, max(0, start - _LOOK_BACK), start)):
            continue
        if "value" not in join.re.groupindex:
            return _assigned(text, start, end, kind, join)
        named = place.is_no_name and name_kind(join["value"]) is not NameKind.PLAIN
        if not named and not is_harmless(join["value"], judged):
            return join.span("value")
    return None


def _assigned(text: str, start: int, end: int, kind: NameKind, join: re.Match[str]) -> Span | None:
    value = _VALUE.match(text, join.end())
    if value is None:
        return None
    if TEXT["opening"].match(value[0]):
        first, last = inside_quotes(text, *value.span())
        colon = join[0].split("\n")[0].rstrip().endswith(":")
        if "\n" in join[0] and colon and text[end] not in "'\"":
            return None  # the first line of a block of code
        if is_harmless(text[first:last], kind):
            return None
        if more := TEXT["replaced"].match(text, value.end()):  # by another one
            _, last = inside_quotes(text, *(_VALUE.match(text, more.end()) or value).span())
        return first, last
    if value[0][0] in "[({" and value[0][1:].lstrip()[:1] in ("'", '"', "\\", "b"):
        open_list = kind is not NameKind.SECRET or value[0][0] == "{" or MASK[:-1] in value[0]
        return None if open_list or is_sentence(value[0]) else value.span()
    if is_harmless_bare(value[0], kind, text[start:end], join[0]):
        return None
    return value.start(), _end_of_bare(text, start, join[0], value)


def _end_of_bare(text: str, start: int, join: str, value: re.Match[str]) -> int:
    """On a line of its own a value without quotes has more: `PASSWORD=a;b`, `password: a b`."""
    if not TEXT["begins_line"].search(text, max(0, start - _LOOK_BACK), start):
        return value.end()
    if join == "=":
        more = TEXT["no_space"].match(text, value.start())
        return more.end() if more else value.end()
    rest = TEXT["rest_of_line"].match(text, value.end()) if join.startswith(":") else None
    return value.end() if rest is None or any(map(begins_prose, rest[0].split())) else rest.end()
