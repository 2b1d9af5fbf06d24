"""Who does a phase: the recipe's model, its role's, else the configured one, by its size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unified_flow.config.settings import EMBEDDED, Settings
from unified_flow.phases import NAMES
from unified_flow.phases.recipe import PACKAGED, RecipeError
from unified_flow.wiring import wire

BY_RULES = {"query_analyzer", "reflection", "planner", "validation"}
SERVER = {"model": "qwen2.5:7b", "base_url": "http://127.0.0.1:1/v1"}
FILE = {"model": "local:/tmp/model.gguf"}


def models(home: Path, **given: Any) -> dict[str, str | None]:
    services = wire(home, **given)
    return {phase: services.models.name_of(services.recipe(phase).head) for phase in NAMES}


@pytest.mark.parametrize("given", [SERVER, {**FILE, "size": "large"}])
def test_a_large_model_does_every_phase(given: Any, tmp_path: Path) -> None:
    assert set(models(tmp_path, **given).values()) == {given["model"], None}
    assert wire(tmp_path, **given).recipe("planner").path == PACKAGED / "planner.md"


@pytest.mark.parametrize("given", [FILE, {**SERVER, "size": "small"}])
def test_a_small_model_leaves_to_rules_what_they_do_better(given: Any, tmp_path: Path) -> None:
    found = models(tmp_path, **given)
    assert {phase for phase, name in found.items() if name == EMBEDDED} == BY_RULES
    assert found["synthesis"] == given["model"]
    assert wire(tmp_path, **given).recipe("synthesis").path == PACKAGED / "small/synthesis.md"


def test_each_model_has_its_own_size(tmp_path: Path) -> None:
    tables = {
        "big": {"model": "b", "base_url": "http://127.0.0.1:1/v1"},
        "little": {"model": "l", "base_url": "http://127.0.0.1:1/v1", "size": "small"},
    }
    roles = {"reflex": "big", "voice": "little"}
    services = wire(tmp_path, model="big", models=tables, roles=roles)
    folders = {phase: services.recipe(phase).path.parent.name for phase in NAMES}
    assert folders["synthesis"] == "small"
    assert folders["planner"] == folders["reflection"] == "recipes"


def test_a_role_that_is_mapped_has_its_model_whatever_its_size(tmp_path: Path) -> None:
    found = models(tmp_path, model=EMBEDDED, roles={"mind": FILE["model"]})
    assert (found["planner"], found["validation"]) == (FILE["model"], FILE["model"])
    assert found["reflection"] == EMBEDDED


def test_a_recipe_of_ones_own_wins_and_goes_by_its_own_word(tmp_path: Path) -> None:
    """Also one that was copied from version 0.1, which said `rules = true` for every model."""
    own = tmp_path / "recipes"
    own.mkdir()
    text = (PACKAGED / "small/planner.md").read_text().replace('"tools"]', '"tools", "evidence"]')
    (own / "planner.md").write_text(text)
    assert models(tmp_path, **SERVER)["planner"] == SERVER["model"]
    assert models(tmp_path, **FILE)["planner"] == EMBEDDED
    (own / "planner.md").write_text(text.replace("rules = true\n", ""))
    assert models(tmp_path, **FILE)["planner"] == FILE["model"]
    (own / "small").mkdir()
    (own / "small/planner.md").write_text(text)
    assert wire(tmp_path, **FILE).recipe("planner").path == own / "small/planner.md"
    assert wire(tmp_path, **SERVER).recipe("planner").path == own / "planner.md"


def test_a_recipe_of_ones_own_that_cannot_be_looked_for_is_no_missing_one(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/small").symlink_to("small")
    with pytest.raises(RecipeError, match="cannot be read"):
        wire(tmp_path, **FILE).recipe("planner")


def test_the_embedded_model_has_no_size() -> None:
    assert not Settings().is_small(EMBEDDED)
