from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue, InterventionRequest

Make = Callable[..., InterventionRequest]


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def queue(home: Path) -> InterventionQueue:
    return InterventionQueue(home)


@pytest.fixture
def make() -> Make:
    """A request; each is another failure of another session unless told otherwise."""
    numbers = itertools.count()

    def build(**fields: Any) -> InterventionRequest:
        number = next(numbers)
        words = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
        name = "".join(words[int(digit)] for digit in oct(number)[2:])
        return InterventionRequest(
            **{
                "type": "error",
                "severity": "high",
                "phase": "planner",
                "error_type": f"Error{name}",
                "error_message": f"{name} broke",
                "session_id": f"session-{name}",
                "turn_id": number + 1,
                **fields,
            }
        )

    return build
