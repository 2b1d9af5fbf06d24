"""What a client should do about each code, for programs to read: `GET /errors`
(rag-error-model.md, "Rekommenderat UI-beteende")."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from unified_flow.api.problems.problem import CODES, Code, Kind
from unified_flow.errors.kinds import kind_of_status
from unified_flow.errors.safe_messages import MESSAGES

Show = Literal["near_field", "neutral", "wait", "general"]


class Advice(BaseModel):
    model_config = ConfigDict(frozen=True)

    code: Code
    types: list[Kind]
    statuses: dict[Literal["fail_fast", "graceful"], list[int]] = Field(
        description="HTTP statuses by policy"
    )
    retry_statuses: list[int] = Field(
        description="of these, those after which the same request may succeed, after Retry-After"
    )
    show_to_user: bool
    show: Show = Field(description="near the field, as a neutral text, as a wish to wait, general")
    highlight_field: bool = Field(description="mark the input that details.field names")
    retry: bool = Field(description="whether the same request may succeed later")
    retry_button: bool
    wait: bool = Field(description="wait first: Retry-After, else a moment")
    disable_send: bool = Field(description="let nobody send until then; show a countdown")
    hint_when_frequent: bool = Field(description="speak of high load when it happens often")
    admin: list[str] = Field(description="what to look at in the logs")
    message: dict[Literal["en", "sv"], str] = Field(description="what to show")


class Advices(BaseModel):
    errors: list[Advice]


# Where the service itself refuses, under either policy (problem.py).
REFUSALS: dict[Code, list[int]] = {
    "VALIDATION_ERROR": [401, 403, 404, 405, 408, 409, 413, 415, 422],
    "INTERNAL_ERROR": [503],
}


def _advice(code: Code, show: Show, graceful: list[int], admin: list[str], **more: bool) -> Advice:
    flags = dict.fromkeys(
        (
            "highlight_field",
            "retry",
            "retry_button",
            "wait",
            "disable_send",
            "hint_when_frequent",
        ),
        False,
    )
    types: list[Kind] = [kind for kind, (own, _) in CODES.items() if own == code]
    refusals = REFUSALS.get(code, [])
    halted = sorted({int(status) for own, status in CODES.values() if own == code} | {*refusals})
    degraded = sorted({*graceful, *refusals})
    return Advice(
        code=code,
        types=types,
        statuses={"fail_fast": halted, "graceful": degraded},
        retry_statuses=[s for s in sorted({*halted, *degraded}) if _may_pass(s)],
        show_to_user=True,
        show=show,
        admin=admin,
        message={"en": MESSAGES["en"][f"ui_{code}"], "sv": MESSAGES["sv"][f"ui_{code}"]},
        **(flags | more),
    )


def _may_pass(status: int) -> bool:
    """Of a status of this service, whose own 500 is a mistake that waits for a person."""
    return status != HTTPStatus.INTERNAL_SERVER_ERROR and kind_of_status(status) != "permanent"


ADVICE = Advices(
    errors=[
        _advice("VALIDATION_ERROR", "near_field", [400], ["details.field"], highlight_field=True),
        _advice(
            "RETRIEVAL_ERROR", "neutral", [503], ["code", "details"], retry=True, retry_button=True
        ),
        _advice(
            "LLM_ERROR",
            "neutral",
            [503],
            ["code"],
            retry=True,
            retry_button=True,
            hint_when_frequent=True,
        ),
        _advice(
            "RATE_LIMITED",
            "wait",
            [429],
            ["details.limit"],
            retry=True,
            wait=True,
            disable_send=True,
        ),
        _advice("INTERNAL_ERROR", "general", [500, 503], ["request_id"]),
    ]
)
