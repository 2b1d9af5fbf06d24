"""The settings under [guardrails]. Secrets are named, never written."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from unified_flow.config.paths import ModuleSpec


class GuardrailSettings(BaseModel):
    """What checks messages and replies, and where it is recorded (architecture/guardrails.md)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    moderation_url: str | None = Field(
        default=None, description="OpenAI-compatible moderations endpoint, with /v1; none is asked"
    )
    moderation_key_env: str | None = Field(
        default=None, description="variable that holds its own key; no other key is ever sent to it"
    )
    moderation_model: str | None = Field(
        default=None, description="its name for the model; else the server chooses"
    )
    moderation_timeout_s: float = Field(default=5.0, gt=0, description="seconds for one check")
    moderation_failure: Literal["fail_closed", "fail_open"] = Field(
        default="fail_closed", description="whether silence or an answer follows if it fails"
    )
    moderator: ModuleSpec | None = Field(
        default=None,
        description="a classifier instead: an entry point, `module:name` or `file.py:name`",
    )
    escalate_categories: list[str] = Field(
        default=[], description="categories of moderation that go to a person, such as `self-harm`"
    )
    database_url_env: str | None = Field(
        default=None, description="variable with the URL of a PostgreSQL database; else SQLite"
    )
    alert_count: int = Field(
        default=10, ge=1, description="silent failures or blocks in `alert_window_s` that alert"
    )
    alert_window_s: float = Field(default=600.0, gt=0, description="seconds that they are counted")

    @model_validator(mode="after")
    def _one_moderator(self) -> Self:
        if self.moderator is not None and self.moderation_url is not None:
            raise ValueError("name either a moderation_url or a moderator")
        return self
