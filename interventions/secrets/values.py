"""What follows a secret's name and is no secret: a placeholder, a type, source code, a sentence."""

from __future__ import annotations

import re

from interventions.secrets.names import NameKind, hides, name_kind
from interventions.secrets.rules import MASK, patterns, spelled, words

_HARMLESS, _SAID = patterns("harmless"), re.compile(spelled("{said}"))
_PROSE, _ROOTS = words("after_a_name"), words("roots")
_WEAK = tuple(words("weak"))


def is_masked(text: str) -> bool:
    return text.startswith(MASK[:-1])


def is_placeholder(text: str) -> bool:
    return _HARMLESS["placeholder"].fullmatch(text) is not None


def is_sentence(text: str) -> bool:
    """`This field is required.` is said of a password, and is none."""
    said = text.lower().split()
    return len(said) > 3 and sum(word.strip(".,;:") in _PROSE for word in said) > 1


def is_said(word: str) -> bool:
    """Words of a language, and not random letters."""
    return _SAID.fullmatch(word) is not None


def begins_prose(text: str) -> bool:
    return text.lower().rstrip(".,:;") in _PROSE


def is_harmless(text: str, kind: NameKind) -> bool:
    """Of a text between quotes or tags, and of any other."""
    bare = text.strip()
    nothing = not hides(kind, bare) or _HARMLESS["nothing"].match(bare)
    return bool(nothing) or is_placeholder(bare) or is_sentence(bare)


def is_harmless_bare(text: str, kind: NameKind, name: str, join: str) -> bool:
    """Of a text without quotes after `name` and what joins the two."""
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
