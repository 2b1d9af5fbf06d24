"""A model's text, read strictly but fairly into the pydantic model that the phase expects.

Fair: plain JSON; a fenced block; one object with talk around it, or the same object
twice; reasoning in <think> tags before it; line breaks inside strings.
Strict: two different objects, a truncated or otherwise broken one, a key with two values,
NaN and infinities, half a surrogate pair. Nothing is repaired.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Never, TypeVar

from pydantic import BaseModel, ValidationError

from unified_flow.errors import CutReplyError, EmptyReplyError, NotJSONError, SchemaMismatchError
from unified_flow.lib.printable import brief_repr

Output = TypeVar("Output", bound=BaseModel)

_TAG = r"(?:think|thinking|thought|reasoning|reflection)"
_REASONING = re.compile(rf"\s*<({_TAG})>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN = re.compile(rf"\s*<{_TAG}>", re.IGNORECASE)
# Some chat templates put the opening tag into the prompt, so that only the closing one comes back.
_CLOSE = re.compile(rf"</{_TAG}>", re.IGNORECASE)
_FENCE = re.compile(r"\s*```[\w+-]*[ \t]*\n(.*)\n\s*```\s*", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{[^{}\"':]*\}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_FIELDS_SHOWN = 8
_VALUE_SHOWN = 60
_HINT = "Use a larger model, or make the recipe's prompt ask for the JSON object alone."


def parse_reply(text: str, output: type[Output]) -> Output:
    """Raises EmptyReplyError, CutReplyError (reasoning without its end), NotJSONError,
    SchemaMismatchError."""
    value = _read(text)
    if not isinstance(value, dict):
        raise SchemaMismatchError(
            f"the reply is {_kind(value)}, and {output.__name__} is a JSON object", hint=_HINT
        )
    try:
        return output.model_validate(value)
    except ValidationError as exc:
        raise SchemaMismatchError(_mismatch(exc, output), hint=_HINT) from exc


def reasoning_end(text: str) -> int:
    """Where the reasoning ends in a reply that is still being written; until then, its length."""
    if _OPEN.match(text) is None:
        return 0
    found = _CLOSE.search(text)
    return found.end() if found else len(text)


def ends_early(exc: json.JSONDecodeError) -> bool:
    """True if the JSON is fine as far as it goes, and goes not far enough."""
    rest = exc.doc[exc.pos :].strip()
    literal_begun = any(literal.startswith(rest) for literal in ("true", "false", "null"))
    return literal_begun or exc.msg.startswith("Unterminated string")


def _read(text: str) -> Any:
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise EmptyReplyError("the model's reply is empty", hint="Ask again, or use another model.")
    stripped = text.strip()
    if stripped[0] in '{["' or stripped[0].isdigit():
        # Whole first: an answer may itself contain a fence or a reasoning tag in a string.
        try:
            return _checked(_DECODER.decode(stripped), text)
        except (ValueError, RecursionError):
            pass  # not plain JSON: the forms below say what it is
    start = _after_reasoning(text)
    fence = _FENCE.fullmatch(text, start)
    if fence is not None:
        try:
            return _checked(_DECODER.decode(fence[1].strip()), text)
        except (ValueError, RecursionError):
            start = fence.start(1)
    return _only_object(text, start)


def _after_reasoning(text: str) -> int:
    start = 0
    while (found := _REASONING.match(text, start)) is not None:
        start = found.end()
    if _OPEN.match(text, start):
        raise CutReplyError(
            "the reply ends in the middle of the model's reasoning",
            hint="Raise the phase's token budget in its recipe, or turn the reasoning off.",
        )
    if start == 0 and not text.lstrip().startswith(("{", "`")) and (end := _CLOSE.search(text)):
        start = end.end()
    if start and not text[start:].strip():
        raise EmptyReplyError(
            "the reply holds the model's reasoning and no answer",
            hint="Raise the phase's token budget in its recipe, or turn the reasoning off.",
        )
    return start


def _only_object(text: str, start: int) -> Any:
    """The one JSON object in `text`. What is inside a broken object is never taken for it."""
    found: list[tuple[int, Any]] = []
    at = text.find("{", start)
    while at != -1:
        placeholder = _PLACEHOLDER.match(text, at)
        if placeholder is not None and placeholder[0][1:-1].strip():
            end = placeholder.end()
        else:
            value, end = _decode_at(text, at)
            found.append((at, value))
        at = text.find("{", end)
    if not found:
        begins = _short(text[start:].strip())
        message = f"the reply holds no JSON object (it begins {begins})"
        raise NotJSONError(message, text, start, hint=_HINT)
    first = _canonical(found[0][1])
    for position, value in found[1:]:
        if _canonical(value) != first:
            message = f"the reply holds {len(found)} JSON objects that differ"
            raise NotJSONError(message, text, position, hint=_HINT)
    return _checked(found[0][1], text)


def _decode_at(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as exc:
        what = "cut" if ends_early(exc) else f"broken: {exc.msg}"
        what = f"the JSON object is {what}"
        raise NotJSONError(what, text, exc.pos, hint=_HINT) from exc
    except (ValueError, RecursionError) as exc:
        what = "nested too deeply" if isinstance(exc, RecursionError) else str(exc)
        raise NotJSONError(f"the JSON object is broken: {what}", text, at, hint=_HINT) from exc


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _checked(value: Any, text: str) -> Any:
    if _SURROGATE.search(text) or not text.isascii():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as exc:
            message = "the JSON object holds half a surrogate pair, which is no text"
            raise NotJSONError(message, text, 0, hint=_HINT) from exc
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result and result[key] != value:
            raise ValueError(f"the key {_short(key)} has two values")
        result[key] = value
    return result


def _constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON number")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:_VALUE_SHOWN]} is too large for a number")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float, strict=False
)


def _mismatch(exc: ValidationError, output: type[BaseModel]) -> str:
    errors = exc.errors(include_url=False, include_context=False)
    problems = [_field(error) for error in errors[:_FIELDS_SHOWN]]
    if len(errors) > _FIELDS_SHOWN:
        problems.append(f"and {len(errors) - _FIELDS_SHOWN} more")
    return f"the reply does not fit {output.__name__}: " + "; ".join(problems)


def _field(error: Any) -> str:
    path = ".".join(str(part) for part in error["loc"]) or "(whole)"
    wanted = error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing" or not error["loc"]:
        return f"{path[:_VALUE_SHOWN]}: {wanted}"
    return f"{path[:_VALUE_SHOWN]}: {wanted}, not {_short(error['input'])}"


def _short(value: Any) -> str:
    if isinstance(value, dict | list):
        return _kind(value)
    return brief_repr(value, _VALUE_SHOWN)


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if value is None else kinds.get(type(value), "a number")
