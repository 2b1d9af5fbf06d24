"""Which model plays which role, and one instance of each for the process."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

from unified_flow.config.settings import EMBEDDED, Settings
from unified_flow.models import Model
from unified_flow.models.circuit_breaker import BoundedModel, CircuitRules


class ModelChoice(Protocol):
    """What a phase's recipe says of its model."""

    @property
    def role(self) -> Literal["reflex", "mind", "voice", "none"]: ...
    @property
    def model(self) -> str | None: ...
    @property
    def rules(self) -> bool: ...


class ModelRegistry:
    """Models are made on first use, so a flow that never calls a server never loads its client.

    `state` is the flow's state folder, where a warm local server is noted.
    """

    def __init__(
        self, settings: Settings, models: dict[str, Model] | None = None, *, state: Path
    ) -> None:
        self._settings = settings
        self._state = state
        self._models = {name: self._bounded(own) for name, own in (models or {}).items()}
        self._configured_is_small = self._is_small(settings.model)

    def name_of(self, choice: ModelChoice, *, by_rules: bool | None = None) -> str | None:
        """The recipe's own model, else its role's, else the configured one, which leaves to rules
        what they do better than a small one; None for no role. `by_rules` overrules the recipe."""
        if choice.role == "none":
            return None
        mapped = self._mapped(choice)
        if by_rules is None:
            by_rules = choice.rules and mapped is None and self._configured_is_small
        return EMBEDDED if by_rules else mapped or self._settings.model

    def is_small(self, choice: ModelChoice) -> bool:
        """Whether a small language model does the phase, or leaves it to rules."""
        mapped = self._mapped(choice)
        small = self._configured_is_small if mapped is None else self._is_small(mapped)
        return small and choice.role != "none"

    def _is_small(self, name: str) -> bool:
        return name != EMBEDDED and self._settings.is_small(name)

    def _mapped(self, choice: ModelChoice) -> str | None:
        of_role: str | None = getattr(self._settings.roles, choice.role, None)
        return choice.model or of_role

    def of_phase(self, choice: ModelChoice, *, by_rules: bool | None = None) -> Model:
        """Raises ConfigError if the model is not configured or its key cannot be had."""
        return self.named(self.name_of(choice, by_rules=by_rules) or self._settings.model)

    def named(self, name: str) -> Model:
        """Raises ConfigError as `of_phase` does."""
        if name not in self._models:
            self._models[name] = self._bounded(self._make(name))
        return self._models[name]

    def _bounded(self, model: Model) -> Model:
        """The model with the time-out and breaker of `graceful`; other policies add none. The
        embedded model, which waits for nobody, has none either."""
        if self._settings.policy != "graceful" or model.name == EMBEDDED:
            return model
        own = self._settings.graceful
        circuit = CircuitRules(own.breaker_failures, own.breaker_window_s, own.breaker_open_s)
        return BoundedModel(model, own.generation_timeout_s, circuit if own.breaker else None)

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()

    def _make(self, name: str) -> Model:
        if name == EMBEDDED:
            from unified_flow.models.embedded.model import EmbeddedModel

            return EmbeddedModel()
        if (path := self._settings.local_path(name)) is not None:
            from unified_flow.models.local_model import LocalModel

            return LocalModel(
                name,
                path,
                state=self._state,
                context_tokens=self._settings.local.context_tokens,
                start_timeout_s=self._settings.local.start_timeout_s,
                timeout_s=self._settings.timeout_s,
            )
        from unified_flow.models.openai.model import OpenAIModel
        from unified_flow.servers.keys import read_key

        own = self._settings.endpoint(name)
        return OpenAIModel(
            name=name,
            base_url=own.base_url,
            model=own.model,
            api_key=read_key(own.api_key_env, own.api_key_file),
            timeout_s=own.timeout_s,
        )
