"""Which model a phase gets: its recipe's, its role's, rules if they do better, else the named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unified_flow.config.settings import EMBEDDED, Settings
from unified_flow.models.registry import ModelRegistry
from unified_flow.phases import NAMES
from unified_flow.phases.recipe import load

BY_RULES = {"query_analyzer", "reflection", "planner", "validation"}


def models(tmp_path: Path, override: Path | None = None, **given: Any) -> dict[str, str | None]:
    known = ModelRegistry(Settings(**{"model": "big", **given}), state=tmp_path)
    return {phase: known.name_of(load(phase, override).head) for phase in NAMES}


def test_by_default_rules_do_what_they_do_better(tmp_path: Path) -> None:
    found = models(tmp_path, mix="measured")
    assert {phase for phase, name in found.items() if name == EMBEDDED} == BY_RULES
    assert found["synthesis"] == "big"


def test_one_setting_gives_everything_to_the_model(tmp_path: Path) -> None:
    assert set(models(tmp_path, mix="model").values()) == {"big", None}


@pytest.mark.parametrize("mix", ["measured", "model"])
def test_a_role_that_is_mapped_has_its_model(mix: str, tmp_path: Path) -> None:
    found = models(tmp_path, mix=mix, roles={"mind": "small"})
    assert (found["planner"], found["validation"]) == ("small", "small")


def test_a_recipe_of_ones_own_goes_by_its_own_word(tmp_path: Path) -> None:
    text = load("planner", None).path.read_text().replace("rules = true\n", "")
    (tmp_path / "planner.md").write_text(text)
    assert models(tmp_path, tmp_path, mix="measured")["planner"] == "big"
