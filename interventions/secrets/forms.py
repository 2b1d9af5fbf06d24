"""Secrets inside text: by their form, by the name before them, whatever joins the two, and by the
place that a name has in a list of names: `user, password = "a", "b"`, `(user, password) VALUES
(...)`, and tables with a header.

One pass looks at the words; only one that is, or ends, a secret's name is looked at with its
surroundings. How names and values are written is a table, `secrets.toml`. What follows a name and
is no secret comes last: a placeholder, a type, source code, a sentence.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any

from interventions.secrets import rules
from interventions.secrets.names import NameKind, hides, name_kind

_WHOLE = [
    (hint, re.compile(rules.spelled(form)))
    for hint, forms in rules.TABLE["whole"].items()
    for form in ([forms] if isinstance(forms, str) else forms)
]
_VALUE = re.compile("|".join(map(rules.spelled, rules.TABLE["value"].values())))
_WORD = re.compile(r"(?P<name>[^\W\d][\w\-]*+)")
# A `\n` written out before a name, and `%3F`, look like letters of it.
_ENCODED_WORD = re.compile(rf"(?:(?<=\\)[nrt]|(?<=%)[0-9A-Fa-f]{{2}})?{_WORD.pattern}")
# Second words of a name in two: `API key: ...`.
_SECONDS = frozenset(pair.partition("-")[2] for pair in rules.words("secret_pairs"))
_CANDIDATES = rules.words("schemes") | _SECONDS
_LOOK_BACK = 80
_PASSES = 5
_SHORTEST_ENCODED = 21
_A_WORD = re.compile(r"[a-z_]{1,19}")  # as keys are; each issued token is longer
_MOST_ROWS = 200
_LAST = ("", ")", "\n", "\r\n")
_HARMLESS = rules.patterns("harmless")
# Words of a language, and not random letters.
_SAID = re.compile(rules.spelled("{said}"))
_PROSE, _ROOTS = rules.words("after_a_name"), rules.words("roots")
_WEAK = tuple(rules.words("weak"))

_KINDS = {"any": set(NameKind), "": set(NameKind) - {NameKind.PLAIN}, "secret": {NameKind.SECRET}}


class _Place:
    """Where a secret stands by its name: a row of the table, which explains the fields."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        forms = (rules.spelled(row.get(part, "")) for part in ("after", "before", "name"))
        self.after, self.before, self.name = map(re.compile, forms)
        self.kinds = _KINDS[row.get("kinds", "")]
        self.is_no_name = row.get("is_no_name", False)


_PLACES = list(map(_Place, rules.TABLE["place"].values()))


@lru_cache(maxsize=1024)
def _places_of(name: str, kind: NameKind) -> list[_Place]:
    return [place for place in _PLACES if kind in place.kinds and place.name.match(name)]


def scrub(text: str) -> str:
    """What one form leaves may be all of another's value, so that it is looked at again."""
    for _ in range(_PASSES):
        before, text = text, _scrub_once(text)
        if text == before:
            break
    return text


def _scrub_once(text: str) -> str:
    if len(text) < 6 or _A_WORD.fullmatch(text):
        return text
    text = rules.mask_tokens(text)
    if max(map(len, text.split()), default=0) > _SHORTEST_ENCODED:
        text = rules.KEY["encoded"].sub(_mask_encoded, text)
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
    return match[0] if scrub(inner) == inner else rules.MASK


def _mask_whole(match: re.Match[str]) -> str:
    parts = match.groupdict()
    keep = parts.get("keep") or ""
    secret = match[0][len(keep) :]
    shown = rules.is_masked(secret) or is_placeholder(parts.get("value") or secret)
    return match[0] if shown else keep + rules.MASK


def _mask_named(text: str) -> str:
    words_in = _ENCODED_WORD if "\\" in text or "%" in text else _WORD
    names = set(filter(_is_candidate, set(words_in.findall(text))))
    if not names:
        return text
    text = mask_columns(text)
    found: list[rules.Span] = []
    before, done = None, 0
    for word in words_in.finditer(text):
        if word["name"] in names and word.start() >= done:
            span = _secret_of(text, *word.span("name"), _kind_of(text, word, before))
            if span is not None and span[0] >= done:
                found.append(span)
                done = span[1]
        before = word
    return rules.without(text, found)


def _is_candidate(name: str) -> bool:
    return name_kind(name) is not NameKind.PLAIN or name.lower() in _CANDIDATES


def _kind_of(text: str, word: re.Match[str], before: re.Match[str] | None) -> NameKind:
    name = word["name"]
    kind = name_kind(name)
    if kind is not NameKind.PLAIN or before is None or name.lower() not in _SECONDS:
        return kind
    together = text[before.end() : word.start()] in (" ", ".")
    return name_kind(f"{before['name']} {name}") if together else kind


def _secret_of(text: str, start: int, end: int, kind: NameKind) -> rules.Span | None:
    """The span of the secret that the name from `start` to `end` is about."""
    just_before = text[max(0, start - 3) : start].rstrip("\"' ")
    if just_before.endswith((":", "=")) and kind is not NameKind.PLAIN:
        # `value: ..., name: PASSWORD`, in the order of the alphabet
        earlier = rules.TEXT["value_before"].search(text, max(0, start - 300), start)
        if earlier is not None and not rules.is_masked(earlier["value"]):
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


def _assigned(
    text: str, start: int, end: int, kind: NameKind, join: re.Match[str]
) -> rules.Span | None:
    value = _VALUE.match(text, join.end())
    if value is None:
        return None
    if rules.TEXT["opening"].match(value[0]):
        first, last = rules.inside_quotes(text, *value.span())
        colon = join[0].split("\n")[0].rstrip().endswith(":")
        if "\n" in join[0] and colon and text[end] not in "'\"":
            return None  # the first line of a block of code
        if is_harmless(text[first:last], kind):
            return None
        if more := rules.TEXT["replaced"].match(text, value.end()):  # by another one
            _, last = rules.inside_quotes(text, *(_VALUE.match(text, more.end()) or value).span())
        return first, last
    if value[0][0] in "[({" and value[0][1:].lstrip()[:1] in ("'", '"', "\\", "b"):
        open_list = kind is not NameKind.SECRET or value[0][0] == "{" or rules.MASK[:-1] in value[0]
        return None if open_list or is_sentence(value[0]) else value.span()
    if is_harmless_bare(value[0], kind, text[start:end], join[0]):
        return None
    return value.start(), _end_of_bare(text, start, join[0], value)


def _end_of_bare(text: str, start: int, join: str, value: re.Match[str]) -> int:
    """On a line of its own a value without quotes has more: `PASSWORD=a;b`, `password: a b`."""
    if not rules.TEXT["begins_line"].search(text, max(0, start - _LOOK_BACK), start):
        return value.end()
    if join == "=":
        more = rules.TEXT["no_space"].match(text, value.start())
        return more.end() if more else value.end()
    rest = rules.TEXT["rest_of_line"].match(text, value.end()) if join.startswith(":") else None
    return value.end() if rest is None or any(map(begins_prose, rest[0].split())) else rest.end()


def mask_columns(text: str) -> str:
    found: list[rules.Span] = []
    for head in rules.TEXT["columns"].finditer(text):
        names = [name.strip(" \t\"'`") for name in head["names"].split(head["sep"])]
        names = list(filter(None, names))
        secret = [n for n, name in enumerate(names) if name_kind(name) is NameKind.SECRET]
        if not secret or (head["lines"] and not _begins_table(text, head, len(names))):
            continue
        at = head.end()
        for _ in range(_MOST_ROWS):
            begins = rules.TEXT["row"].match(text, at)
            found_cells = rules.TEXT["column"].finditer(text, begins.end() if begins else at)
            cells = list(islice(found_cells, len(names)))
            if not _is_row(text, cells, len(names)):
                break
            spans = filter(None, (_secret_in(cells[n], names[n], head) for n in secret))
            found += [span for span in spans if not found or span[0] >= found[-1][1]]
            at = cells[-1].end()
            if head["tuple"]:
                break
    return rules.without(text, found)


def _begins_table(text: str, head: re.Match[str], columns: int) -> bool:
    """A header is the whole line, and is no row under another one."""
    start = text.rfind("\n", 0, head.start()) + 1
    above = text[:start].rstrip("\n").rpartition("\n")[2]
    alone = not text[start : head.start()].strip(" \t|│")
    return alone and above.count(head["sep"]) < columns - 1


def _is_row(text: str, cells: list[re.Match[str]], columns: int) -> bool:
    """Whether there are as many cells as names, one after another on one line."""
    if len(cells) < columns or any(one["end"] in _LAST for one in cells[:-1]):
        return False
    follows = all(one.end() == two.start() for one, two in pairwise(cells))
    return follows and rules.TEXT["row_end"].match(text, cells[-1].start("end")) is not None


def _secret_in(cell: re.Match[str], name: str, head: re.Match[str]) -> rules.Span | None:
    start, end = rules.inside_quotes(cell.string, *cell.span("cell"))
    value = cell.string[start:end]
    is_bare = (start, end) == cell.span("cell")
    if is_bare and (not head["lines"] or len(value) < 4 or is_code(value, loose=True)):
        return None
    if name_kind(value) is not NameKind.PLAIN or is_harmless(value, NameKind.SECRET):
        return None
    return None if name.lower().endswith(_WEAK) and _SAID.fullmatch(value) else (start, end)


def is_placeholder(text: str) -> bool:
    return _HARMLESS["placeholder"].fullmatch(text) is not None


def is_sentence(text: str) -> bool:
    """`This field is required.` is said of a password, and is none."""
    said = text.lower().split()
    return len(said) > 3 and sum(word.strip(".,;:") in _PROSE for word in said) > 1


def begins_prose(text: str) -> bool:
    return text.lower().rstrip(".,:;") in _PROSE


def is_harmless(text: str, kind: NameKind) -> bool:
    """Whether a text under a name of this kind is no secret, quoted or not."""
    bare = text.strip()
    nothing = not hides(kind, bare) or _HARMLESS["nothing"].match(bare)
    return bool(nothing) or is_placeholder(bare) or is_sentence(bare)


def is_harmless_bare(text: str, kind: NameKind, name: str, join: str) -> bool:
    """`is_harmless` for a text without quotes; `join` stands between `name` and it."""
    bare = text.strip("\\")
    spaced = join[-1:].isspace()
    if is_harmless(bare, kind) or is_code(bare, loose=spaced or kind is not NameKind.SECRET):
        return True
    if kind is not NameKind.SECRET and _HARMLESS["tokens"].match(bare):
        return True
    if ":" not in join:
        return False
    weak = name.lower().endswith(_WEAK) and _HARMLESS["after_weak"].match(bare.lower())
    return bool(weak) or (spaced and begins_prose(bare))


def is_code(bare: str, *, loose: bool) -> bool:
    """`get_token(`, `self.token`, `db_password`; strictly only what no password looks like."""
    no_digits = not any(map(str.isdigit, bare))
    if _HARMLESS["call"].match(bare):
        return loose or no_digits
    if _HARMLESS["dotted"].match(bare):
        parts = bare.split(".")
        known = parts[0].lower() in _ROOTS or any(name_kind(p) is not NameKind.PLAIN for p in parts)
        return known or (loose and no_digits)
    return _HARMLESS["identifier"].match(bare) is not None and name_kind(bare) is not NameKind.PLAIN
