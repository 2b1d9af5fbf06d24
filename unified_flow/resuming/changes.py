"""What is not as it was when the turn stopped: commit, configuration, recipe, model, versions."""

from __future__ import annotations

from typing import Any

from interventions.environment import environment
from unified_flow import recipe as recipes
from unified_flow.errors import RecipeError
from unified_flow.phases import NAMES
from unified_flow.services import Services
from unified_flow.turn import Turn

SHOWN = 12


def then(turn: Turn) -> dict[str, Any]:
    """What is known of the environment in which the turn stopped.

    A turn that was killed could say nothing of the commit and the versions; its journal knows the
    configuration, and recipe and model of the phase that was running.
    """
    known: dict[str, Any] = {"config_digest": turn.config_digest}
    if turn.visits:
        known["model"] = turn.visits[-1].model
        known["recipe_digest"] = turn.visits[-1].recipe_digest
    if turn.failure is not None:
        known |= turn.failure.environment
    return {key: value for key, value in known.items() if value is not None}


def now(services: Services, phase: str | None) -> dict[str, Any]:
    """The same of this process; `phase` is the one whose recipe and model count."""
    extra: dict[str, Any] = {"config_digest": services.config_digest}
    if phase in NAMES:
        try:
            recipe = recipes.load(phase, services.recipes)
        except RecipeError:
            pass  # the phase meets the same trouble, where it becomes an intervention
        else:
            extra |= {
                "recipe": str(recipe.path),
                "recipe_digest": recipe.digest,
                "model": services.models.name_of(recipe),
            }
    return environment(services.home, extra)


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """One line for each that differs, of what both know; empty if nothing recorded has changed."""
    lines = []
    for key, name in (("git_commit", "git commit"), ("python", "python"), ("model", "model")):
        if key in before and before[key] != after.get(key):
            lines.append(f"{name} {_short(before[key])} -> {_short(after.get(key))}")
    if before.get("git_commit") == after.get("git_commit") and after.get("git_dirty"):
        was = "was clean then" if before.get("git_dirty") is False else "what is in them is unknown"
        lines.append(f"uncommitted changes ({was})")
    old, new = before.get("packages") or {}, after.get("packages") or {}
    lines += [
        f"{package} {old[package]} -> {new.get(package, 'gone')}"
        for package in old
        if old[package] != new.get(package)
    ]
    if _differs("config_digest", before, after):
        lines.append("configuration")
    if _differs("recipe_digest", before, after):
        lines.append(f"recipe {after.get('recipe', '')}".strip())
    return lines


def _differs(key: str, before: dict[str, Any], after: dict[str, Any]) -> bool:
    return key in before and key in after and before[key] != after[key]


def _short(value: object) -> str:
    return str(value)[:SHOWN] if value else "none"
