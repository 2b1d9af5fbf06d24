"""What a program imports, from signatures and docstrings; the events of a turn likewise."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, get_args

from pydantic import BaseModel

import interventions
import unified_flow
from from_code.markdown import fields_of, plain, table, type_text
from unified_flow.turns import events as journal
from unified_flow.wiring import WiringOptions

WIDTH = 90


def library() -> str:
    parts = []
    for package in (unified_flow, interventions):
        parts.append(f"## {package.__name__}")
        public = {name: getattr(package, name) for name in package.__all__}
        for name in sorted(public, key=lambda each: (_rank(public[each]), each)):
            parts.append(_described(name, public[name]))
            if name == "UnifiedFlow":
                parts.append(f"The options of `from_config`:\n\n{_options()}")
    return "\n\n".join(filter(None, parts))


def _rank(value: Any) -> int:
    """What a program calls first, what it may catch last."""
    return 2 * _is_error(value) - (value is unified_flow.UnifiedFlow)


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def _options() -> str:
    rows = (
        (f"`{name}`", f"`{_source(hint)}`") for name, hint in WiringOptions.__annotations__.items()
    )
    return table(("option", "type"), rows)


def _source(hint: Any) -> str:
    return str(getattr(hint, "__forward_arg__", hint))


def _described(name: str, value: Any) -> str:
    """A public name: how it is called, its docstring, and its public members."""
    if not inspect.isclass(value):
        return f"### {name}\n\n{_function(name, value)}"
    parts = [f"### {name}"]
    if _is_made(value):
        parts.append(f"```python\n{_call(name, value)}\n```")
    parts.append(_docstring(value))
    if issubclass(value, BaseModel):
        return "\n\n".join([*parts, fields_of(value)])
    if is_dataclass(value):
        rows = ((f"`{each.name}`", f"`{each.type}`") for each in fields(value))
        parts.append(table(("field", "type"), rows))
    for label, member in vars(value).items():
        if label.startswith("_"):
            continue
        if isinstance(member, property):
            parts.append(f"`{label}: {_returned(member.fget)}` {_docstring(member)}")
        elif inspect.isfunction(getattr(member, "__func__", member)):
            parts.append(_function(label, member))
    return "\n\n".join(filter(None, parts))


def _is_made(value: type) -> bool:
    """Whether a program calls it to make one, rather than to describe what it has got."""
    given = _is_error(value) or is_dataclass(value) or issubclass(value, BaseModel | str)
    return not (given or Protocol in value.__bases__ or hasattr(value, "from_config"))


def _returned(function: Any) -> str:
    return _annotation(inspect.signature(function).return_annotation)


def _function(name: str, value: Any) -> str:
    called = getattr(value, "__func__", value)
    return f"```python\n{_call(name, called)}\n```\n\n{_docstring(called)}"


def _call(name: str, value: Any) -> str:
    """The signature, on a line for each parameter where one line would be too long."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    shown: list[str] = []
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not {"*"} & {text[:1] for text in shown}:
            shown.append("*")
        if each.name not in ("self", "cls"):
            shown.append(_parameter(each))
    prefix = "async " if inspect.iscoroutinefunction(value) else ""
    returned = signature.return_annotation
    arrow = "" if returned in (signature.empty, None, "None") else f" -> {_annotation(returned)}"
    whole = f"{prefix}{name}({', '.join(shown)}){arrow}"
    if len(whole) <= WIDTH:
        return whole
    return f"{prefix}{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){arrow}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{stars}{parameter.name}"
    if parameter.annotation is not parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    return text if parameter.default is parameter.empty else f"{text} = {parameter.default!r}"


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else type_text(annotation)


def _docstring(value: Any) -> str:
    """Of a class without one, what its base says is no news."""
    return plain(inspect.cleandoc(getattr(value, "__doc__", None) or ""))


def events() -> str:
    union = get_args(get_args(journal.AnyEvent)[0])
    parts = []
    for model in union:
        kind = model.model_fields["event"].default
        parts += [f"## {kind}", _docstring(model), fields_of(model)]
    return "\n\n".join(filter(None, parts))
