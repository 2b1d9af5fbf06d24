"""One failure that waits for a person ("Intervention Request System" of the core document)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

import pydantic
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, Field

from interventions.admission.capture import capture, environment, text_of
from interventions.entry import MOST, InterventionType, Severity, new_id
from interventions.errors import ArgumentError
from interventions.times import utc_now


def _writable(value: Any) -> Any:
    """Lone surrogates cannot be written as UTF-8, and must not keep a failure out of the queue."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


def _findable(value: str) -> str:
    if not value.isprintable() or value != value.strip():
        raise ValueError("should be printable text without spaces around it")
    return value


def _as_word(value: Any) -> str:
    """Of anything else the name of its type: an enum would ask for its `repr`, however deep."""
    return value if isinstance(value, str) else type(value).__name__


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("should be in the years 1 to 9999 in UTC") from error


Text = Annotated[str, BeforeValidator(_writable)]
Name = Annotated[Text, AfterValidator(_findable), Field(min_length=1, max_length=200)]
Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
Number = Annotated[int, Field(gt=-MOST, lt=MOST)]
Count = Annotated[int, Field(ge=1, lt=MOST)]


class InterventionRequest(BaseModel, extra="allow", frozen=True):
    """Only type, severity, phase, error_type, error_message, session_id and turn_id are needed.
    `turns` are others that the failure has stopped beside its own.

    A naive datetime is refused. Fields of a newer version are kept. It is redacted when written,
    not before: until then it holds what the caller gave.
    """

    type: Annotated[InterventionType, BeforeValidator(_as_word)]
    severity: Annotated[Severity, BeforeValidator(_as_word)]
    phase: Text
    error_type: Text
    error_message: Text
    session_id: Text
    turn_id: Number

    tool: Text | None = None
    context: dict[Any, Any] = Field(default_factory=dict)
    created_at: Moment = Field(default_factory=utc_now)
    id: Name = Field(default_factory=lambda data: new_id(data["created_at"]))
    resolved_at: Moment | None = None
    resolution: Text | None = None

    error_category: Text | None = None
    request_id: Text | None = None
    traceback: Text | None = None
    exception_type: Text | None = None
    culprit: Text | None = None
    location: Text | None = None
    fingerprint: Annotated[Text, Field(max_length=200)] = ""
    fp_version: Number | None = None

    occurrences: Count = 1
    first_seen: Moment = Field(default_factory=lambda data: data["created_at"])
    last_seen: Moment = Field(default_factory=lambda data: data["created_at"])
    latest_sample: dict[str, Any] | None = None
    merged: list[dict[str, Any]] = Field(default_factory=list)
    turns: list[Number] = Field(default_factory=list)

    retry_of: str | None = None
    regression_of: str | None = None
    regression_note: Text | None = None
    resolutions: list[dict[str, Any]] = Field(default_factory=list)
    dismissed_at: Moment | None = None
    snoozed_until: Moment | None = None
    snoozed_until_occurrences: Number | None = None
    owner: Text | None = None
    version: Count = 1
    environment: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def from_exception(
        cls,
        error: BaseException,
        *,
        phase: str,
        session_id: str,
        turn_id: int = 0,
        type: InterventionType | str = InterventionType.ERROR,
        severity: Severity | str = Severity.HIGH,
        tool: str | None = None,
        error_category: str | None = None,
        request_id: str | None = None,
        context: dict[Any, Any] | None = None,
        environment: dict[str, Any] | None = None,
        retry_of: str | None = None,
        home: Path | str | None = None,
    ) -> Self:
        """Everything that is known at raise time. It stands in an `except`, so that it raises
        nothing of its own: an argument that cannot be used is told in `context["refused"]`.

        `environment` adds what only the caller knows (configuration, model and recipe hashes).
        `retry_of` is the id of the entry whose turn is being retried.
        """
        raised = {"error_type": error.__class__.__name__, **capture(error)}
        kind = {"type": type, "severity": severity, "error_category": error_category}
        turn = {"session_id": session_id, "turn_id": turn_id, "request_id": request_id}
        where = {"phase": phase, "tool": tool, "environment": _environment(home, environment)}
        fields: dict[str, Any] = {**raised, **kind, **turn, **where, "retry_of": retry_of}
        fields["context"] = {} if context is None else context
        try:
            return cls(**fields)
        except pydantic.ValidationError as trouble:
            return cls(**_usable(fields, trouble))

    @property
    def priority(self) -> int:
        """1 to 4, derived and never stored."""
        from interventions.entry import priority

        return priority(self.model_dump(include={"type", "severity", "phase", "error_category"}))


def validated(fields: dict[str, Any]) -> InterventionRequest:
    """Raises ArgumentError, which names the first of the fields that are wrong."""
    try:
        return InterventionRequest(**fields)
    except pydantic.ValidationError as error:
        wrong = _wrong(error)
        what = "; ".join(f"{name}: {why}" for name, why in wrong.items())
        raise ArgumentError(what, argument=next(iter(wrong))) from error


def _wrong(error: pydantic.ValidationError) -> dict[str, str]:
    """Why each field is wrong, without mistakes that only follow from another."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    wrong = [each for each in found if each["type"] != "default_factory_not_called"]
    return {str(each["loc"][0]): each["msg"] for each in wrong}


def _usable(fields: dict[str, Any], trouble: pydantic.ValidationError) -> dict[str, Any]:
    """The fields, with usable values in place of those that were refused."""
    refused = {}
    usable: dict[str, Any] = {**fields}
    for name, why in _wrong(trouble).items():
        given = text_of(fields[name])
        refused[name] = f"{given}: {why}"
        usable[name] = _INSTEAD.get(name, given)
    context = {"value": fields["context"]} if "context" in refused else fields["context"]
    return {**usable, "context": {**context, "refused": refused}}


_INSTEAD: dict[str, Any] = {"type": "error", "severity": "high", "turn_id": 0, "environment": {}}


def _environment(home: Path | str | None, extra: dict[str, Any] | None) -> dict[str, Any]:
    try:
        return environment(Path(home) if home else Path.cwd(), extra)
    except Exception as trouble:  # noqa: BLE001 - a broken installation is no reason to lose a failure
        known = extra if isinstance(extra, dict) else {}
        return {"unknown": f"{trouble.__class__.__name__}: {text_of(trouble)}", **known}
