"""The reference pages of the site, as Markdown, from the code that they describe."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

import click
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import interventions
import unified_flow
from interventions import errors as queue_errors
from interventions.cli.terminal import Code
from interventions.schema import queue_schema
from unified_flow import errors
from unified_flow.api.app import routes
from unified_flow.api.routes.operations import ADVICE
from unified_flow.cli.app import Commands
from unified_flow.config.settings_reference import every_setting
from unified_flow.engine.telemetry.query_log import RequestLine
from unified_flow.errors.classification import CODE_OF_STAGE, TABLE
from unified_flow.turns import events as journal
from unified_flow.wiring import WiringOptions

WIDTH = 90
METHODS = ("get", "post", "put", "delete")
EXITS = {
    Code.DONE: "answered, a question back, an honest abstention, or silence by policy",
    Code.FAILED: "a phase failed, and an intervention waits",
    Code.USAGE: "usage or configuration",
    Code.NOT_FOUND: "not found, or ambiguous",
    Code.QUEUE: "the queue's own trouble: nobody was told",
    Code.CONFLICT: "somebody else was first, or the entry is not in that state",
    Code.INTERRUPTED: "interrupted",
}


def commands() -> str:
    root = click.Context(Commands(name="unified-flow"), info_name="unified-flow")
    return "\n\n".join(_commands(root, 2))


def _commands(context: click.Context, level: int) -> Iterator[str]:
    command = context.command
    yield f"{'#' * level} {context.command_path}"
    yield _help(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(click.Context(inner, info_name=name, parent=context), level + 1)
        return
    yield f"```text\n{' '.join(command.get_usage(context).split())}\n```"
    rows = [
        record for each in command.get_params(context) if (record := each.get_help_record(context))
    ]
    yield _table(("option", "meaning"), ((f"`{name}`", text) for name, text in rows))


def _help(command: click.Command) -> str:
    """Paragraphs as they are; after a `\\b` the lines are examples."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(
        f"```text\n{each.removeprefix(chr(8)).strip()}\n```"
        if each.startswith("\b")
        else _plain(each)
        for each in paragraphs
    )


def settings() -> str:
    def sections() -> Iterator[str]:
        table: str | None = None
        rows: list[tuple[str, str, str]] = []
        for known in every_setting():
            if known.named is not None:
                continue
            above = ".".join(known.path[:-1])
            if above != table and rows:
                yield _section(table, rows)
                rows = []
            table = above
            rows.append(
                (f"`{known.path[-1]}`", f"`{_value(known.default)}`", _cell(known.description))
            )
        yield _section(table, rows)
        for known in every_setting():
            if known.named is not None:
                yield f"## [{known.key}.NAME]\n\n{_plain(known.description)}"
                yield _fields(known.named)

    return "\n\n".join(sections())


def _section(table: str | None, rows: list[tuple[str, str, str]]) -> str:
    head = f"## [{table}]" if table else "## At the top of the file"
    return f"{head}\n\n{_table(('setting', 'default', 'meaning'), rows)}"


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fields(model: type[BaseModel]) -> str:
    rows = []
    for name, field in model.model_fields.items():
        shown = f"`{_value(field.default)}`"
        if field.default is PydanticUndefined:
            shown = "made" if field.default_factory else "required"
        rows.append((f"`{name}`", f"`{_type(field.annotation)}`", shown, field.description or ""))
    return _table(("field", "type", "default", "meaning"), rows)


def http_api() -> str:
    schema = routes().openapi()
    parts = ["## Routes"]
    for path, operations in schema["paths"].items():
        for method in METHODS:
            if (operation := operations.get(method)) is None:
                continue
            parts.append(f"### {method.upper()} {path}")
            parts.append(operation.get("description") or operation["summary"])
            parts += list(_parameters(operation))
            if body := operation.get("requestBody"):
                parts.append(f"Body: {_of_content(body['content'])}")
            replies = [
                f"{status}: {_of_content(reply['content'])}"
                for status, reply in operation["responses"].items()
                if status.startswith("2") and reply.get("content")
            ]
            failed = [status for status in operation["responses"] if not status.startswith("2")]
            parts.append("; ".join([*replies, f"errors: {', '.join(failed)}"]))
    parts.append("## Bodies")
    for name, shape in sorted(schema["components"]["schemas"].items()):
        parts.append(f"### {name}")
        parts.append(_plain(shape.get("description", "")))
        parts.append(_properties(shape))
    return "\n\n".join(filter(None, parts))


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    rows = [
        (
            f"`{each['name']}`",
            each["in"],
            _shape(each["schema"]),
            _cell(each.get("description", "")),
        )
        for each in operation.get("parameters", ())
    ]
    if rows:
        yield _table(("parameter", "in", "type", "meaning"), rows)


def _of_content(content: dict[str, Any]) -> str:
    return ", ".join(
        f"{_shape(each['schema'])} as {kind}" if each.get("schema") else kind
        for kind, each in content.items()
    )


def _properties(shape: dict[str, Any]) -> str:
    if "enum" in shape:
        return ", ".join(f"`{each}`" for each in shape["enum"])
    needed = shape.get("required", ())
    rows = [
        (
            f"`{name}`",
            _shape(field),
            "yes" if name in needed else "",
            _cell(field.get("description", "")),
        )
        for name, field in shape.get("properties", {}).items()
    ]
    return _table(("field", "type", "always", "meaning"), rows)


def _shape(schema: dict[str, Any]) -> str:
    """A JSON schema in a word or two, with a link where it has a name."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    for joined in ("anyOf", "oneOf", "allOf"):
        if joined in schema:
            return " or ".join(_shape(each) for each in schema[joined])
    if schema.get("type") == "array":
        return f"list of {_shape(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def library() -> str:
    parts = ["## unified_flow"]
    parts += [_described(name, getattr(unified_flow, name)) for name in unified_flow.__all__]
    parts.append("### Options of from_config")
    parts.append(_options())
    parts.append("## interventions")
    parts += [_described(name, getattr(interventions, name)) for name in interventions.__all__]
    return "\n\n".join(parts)


def _options() -> str:
    rows = (
        (f"`{name}`", f"`{_source(hint)}`") for name, hint in WiringOptions.__annotations__.items()
    )
    return _table(("option", "type"), rows)


def _source(hint: Any) -> str:
    return str(getattr(hint, "__forward_arg__", hint))


def _described(name: str, value: Any) -> str:
    """A public name: what it is called with, its docstring, and its public members."""
    parts = [f"### {name}", f"```python\n{_call(name, value)}\n```", _docstring(value)]
    if inspect.isclass(value) and not issubclass(value, tuple):
        if issubclass(value, BaseModel):
            parts.append(_fields(value))
        for label, member in vars(value).items():
            shown = getattr(member, "__func__", member)
            if label.startswith("_") or not _is_documented(value, label):
                continue
            if isinstance(member, property):
                parts.append(f"`{label}`: {_docstring(member)}")
            elif inspect.isfunction(shown):
                parts.append(f"```python\n{_call(label, shown)}\n```\n\n{_docstring(shown)}")
    return "\n\n".join(filter(None, parts))


def _is_documented(owner: type, label: str) -> bool:
    """A model's own machinery is none of its members."""
    member = inspect.getattr_static(owner, label)
    return bool(inspect.getdoc(member)) and not issubclass(owner, BaseModel)


def _call(name: str, value: Any) -> str:
    """The signature, on a line for each parameter where one line would be too long."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    prefix = "async " if inspect.iscoroutinefunction(value) else ""
    whole = f"{prefix}{name}{signature}".replace("'", "")
    if len(whole) <= WIDTH:
        return whole
    parameters = "".join(f"    {each},\n" for each in signature.parameters.values())
    returned = whole.rpartition(" -> ")[2] if " -> " in whole else ""
    arrow = f" -> {returned}" if returned else ""
    return f"{prefix}{name}(\n{parameters}){arrow}".replace("'", "")


def _docstring(value: Any) -> str:
    """Of a class without one, what its base says is no news."""
    return _plain(inspect.cleandoc(getattr(value, "__doc__", None) or ""))


def events() -> str:
    union = get_args(get_args(journal.AnyEvent)[0])
    parts = []
    for model in union:
        kind = model.model_fields["event"].default
        parts += [f"## {kind}", _docstring(model), _fields(model)]
    return "\n\n".join(filter(None, parts))


def files() -> str:
    entry = queue_schema()
    line = RequestLine.model_json_schema()
    fields = entry["properties"]["interventions"]["items"]
    return "\n\n".join(
        [
            "## shared_state/intervention_queue.json",
            _plain(entry["description"]) + " An entry of `interventions`:",
            _properties(fields),
            "## logs/rag_queries.jsonl",
            _plain(line["description"]),
            _properties(line),
            *(f"### {name}\n\n{_properties(shape)}" for name, shape in line["$defs"].items()),
        ]
    )


def error_classes() -> str:
    parts = ["## Exit codes of the commands"]
    parts.append(
        _table(("code", "means"), ((str(int(code)), text) for code, text in EXITS.items()))
    )
    parts.append("## Codes of the HTTP API")
    parts.append(
        _table(
            ("code", "text", "again?", "what a client does"),
            (
                (f"`{each.code}`", each.message["en"], _again(each), _shown(each))
                for each in ADVICE.errors
            ),
        )
    )
    parts.append("## What an exception means")
    rows = []
    for row in TABLE:
        names = ", ".join(f"`{each.__name__}`" for each in row.types)
        code = row.code or " or ".join(CODE_OF_STAGE[stage] for stage in row.stages)
        rows.append((names, ", ".join(row.stages), f"`{row.category}`", code))
    rows.append(("anything else", "any", "`unknown_error`", "by stage"))
    parts.append(_table(("exception", "stage", "category", "code"), rows))
    parts.append("## Classes of the flow")
    parts.append(_classes(errors.UnifiedFlowError))
    parts.append("## Classes of the queue")
    parts.append(_classes(queue_errors.QueueError))
    return "\n\n".join(parts)


def _again(advice: Any) -> str:
    if not advice.retry:
        return "no"
    return "yes, later" if advice.wait else "yes"


def _shown(advice: Any) -> str:
    field = ", and marks the field" if advice.highlight_field else ""
    return f"shows the text ({advice.show.replace('_', ' ')}){field}"


def _classes(root: type[Exception]) -> str:
    def below(parent: type[Exception]) -> Iterator[type[Exception]]:
        for each in parent.__subclasses__():
            yield each
            yield from below(each)

    found = {
        each.__name__: each
        for each in below(root)
        if each.__module__.startswith(root.__module__.split(".")[0])
    }
    rows = (
        (
            f"`{name}`",
            f"`{each.__base__.__name__ if each.__base__ else ''}`",
            _cell(_docstring(each)),
        )
        for name, each in sorted(found.items())
    )
    return _table(("error", "is a", "means"), rows)


def _type(annotation: Any) -> str:
    if annotation is None or annotation is type(None):
        return "none"
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return (
        " or ".join(filter(None, map(_type, get_args(annotation))))
        if _is_union(annotation)
        else _short(annotation)
    )


def _is_union(annotation: Any) -> bool:
    return "Union" in type(annotation).__name__ or str(annotation).startswith("typing.Optional")


def _short(annotation: Any) -> str:
    text = str(annotation)
    for prefix in ("typing.", "collections.abc.", "datetime."):
        text = text.replace(prefix, "")
    return text.rpartition(".")[2] if "[" not in text else text


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    if not lines:
        return ""
    names = list(head)
    return "\n".join([f"| {' | '.join(names)} |", "|---" * len(names) + "|", *lines])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\|", "|").replace("|", "\\|")


def _plain(text: str) -> str:
    """Text in which no `<` opens a tag."""
    return text.replace("<", "&lt;")


PAGES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "settings": settings,
    "http_api": http_api,
    "library": library,
    "events": events,
    "files": files,
    "errors": error_classes,
}
