"""One failure that waits for a person ("Intervention Request System" of the core document)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from interventions.admission.capture import capture
from interventions.admission.environment import environment
from interventions.admission.fingerprint import FP_VERSION, fingerprint
from interventions.entry import new_id
from interventions.secrets.redaction import redact_text
from interventions.times import utc_now


class InterventionType(StrEnum):
    ERROR = "error"
    CAPTCHA = "captcha"
    PERMISSION = "permission"
    SCHEMA_FAILURE = "schema_failure"
    LIMIT_EXCEEDED = "limit_exceeded"
    ESCALATION = "escalation"


class Severity(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"


def _writable(value: Any) -> Any:
    """Lone surrogates cannot be written as UTF-8, and must not keep a failure out of the queue."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


Text = Annotated[str, BeforeValidator(_writable)]


class InterventionRequest(BaseModel):
    """Only type, severity, phase, error_type, error_message, session_id and turn_id are needed.

    A naive datetime is refused. Fields of a newer version are kept. It is redacted when written,
    not before: until then it holds what the caller gave.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    type: InterventionType
    severity: Severity
    phase: Text
    error_type: Text
    error_message: Text
    session_id: Text
    turn_id: int

    tool: Text | None = None
    context: dict[Any, Any] = Field(default_factory=dict)
    created_at: AwareDatetime = Field(default_factory=utc_now)
    id: str = Field(default_factory=lambda data: new_id(data["created_at"]))
    resolved_at: AwareDatetime | None = None
    resolution: Text | None = None

    error_category: Text | None = None
    request_id: Text | None = None
    traceback: Text | None = None
    exception_type: Text | None = None
    culprit: Text | None = None
    location: Text | None = None
    fingerprint: str = ""
    fp_version: int = FP_VERSION

    occurrences: int = Field(default=1, ge=1)
    first_seen: AwareDatetime = Field(default_factory=lambda data: data["created_at"])
    last_seen: AwareDatetime = Field(default_factory=lambda data: data["created_at"])
    latest_sample: dict[str, Any] | None = None
    merged: list[dict[str, Any]] = Field(default_factory=list)

    retry_of: str | None = None
    regression_of: str | None = None
    regression_note: Text | None = None
    resolutions: list[dict[str, Any]] = Field(default_factory=list)
    dismissed_at: AwareDatetime | None = None
    snoozed_until: AwareDatetime | None = None
    snoozed_until_occurrences: int | None = None
    owner: Text | None = None
    version: int = Field(default=1, ge=1)
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
        """Everything that is known at raise time, and nothing that could raise once more.

        `environment` adds what only the caller knows (configuration, model and recipe hashes).
        `retry_of` is the id of the entry whose turn is being retried.
        """
        captured = capture(error)
        return cls(
            type=InterventionType(type),
            severity=Severity(severity),
            phase=phase,
            tool=tool,
            error_type=error.__class__.__name__,
            error_message=captured.message,
            exception_type=captured.exception_type,
            traceback=captured.traceback,
            culprit=captured.culprit,
            location=captured.location,
            fingerprint=fingerprint(
                phase=phase,
                tool=tool,
                exception_type=captured.exception_type,
                message=redact_text(captured.message),
                culprit=captured.culprit,
            ),
            session_id=session_id,
            turn_id=turn_id,
            error_category=error_category,
            request_id=request_id,
            context=context or {},
            environment=_environment(home, environment),
            retry_of=retry_of,
        )

    @property
    def priority(self) -> int:
        """1 to 4, derived and never stored."""
        from interventions.entry import priority

        return priority(self.model_dump(include={"type", "severity", "phase", "error_category"}))


def _environment(home: Path | str | None, extra: dict[str, Any] | None) -> dict[str, Any]:
    try:
        return environment(Path(home) if home else Path.cwd(), extra)
    except Exception as trouble:  # noqa: BLE001 - a broken installation is no reason to lose a failure
        return {"unknown": f"{trouble.__class__.__name__}: {trouble}", **(extra or {})}
