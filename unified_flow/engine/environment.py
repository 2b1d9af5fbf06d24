"""What a turn ran on, and what differs now: commit, configuration, recipe, model, versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from interventions.admission.capture import environment, passing_environment
from unified_flow.engine.services import Services
from unified_flow.errors import RecipeError
from unified_flow.phases import NAMES
from unified_flow.phases.recipe import Recipe
from unified_flow.turns.events import this_process
from unified_flow.turns.turn import Turn

SHOWN = 12
DIGEST = 16


def beginning(
    services: Services, by: str | None = None, recipe: Callable[[str], Recipe] | None = None
) -> dict[str, Any]:
    """What the first line of a run says of the process: a killed one cannot record it later.

    `by` is who asked for it, if not this process's user; `recipe` reads one like `services.recipe`,
    for a caller that uses what it reads.
    """
    phases = _of_phases(services, recipe or services.recipe)
    return {
        "config_digest": services.config_digest,
        "runner": this_process(by),
        "environment": passing_environment(services.home, phases),
    }


def _environment_then(turn: Turn) -> dict[str, Any]:
    """The environment in which the turn stopped, as far as it is known; the last reading counts."""
    known = dict(turn.environment)
    known["config_digest"] = turn.config_digest
    if turn.failure is not None:
        known |= turn.failure.environment
    last = turn.visits[-1] if turn.visits else None
    if "recipes" in known and last is not None and last.recipe_digest is not None:
        known["recipes"] = known["recipes"] | {last.phase: last.recipe_digest[:DIGEST]}
    return known


def _of_phases(services: Services, read: Callable[[str], Recipe]) -> dict[str, dict[str, str]]:
    recipes: dict[str, str] = {}
    models: dict[str, str] = {}
    for phase in NAMES:
        try:
            recipe = read(phase)
        except RecipeError:
            continue  # the phase meets the same error, and there it becomes an intervention
        recipes[phase] = recipe.digest[:DIGEST]
        if name := services.models.name_of(recipe.head):
            models[phase] = name
    tools = services.toolbox.modules.digests()
    return {"recipes": recipes, "models": models} | ({"tool_modules": tools} if tools else {})


def changed_since(turn: Turn, services: Services) -> list[str]:
    """What differs now from that on which the turn stopped, a line each."""
    own = {"config_digest": services.config_digest} | _of_phases(services, services.recipe)
    return differences(_environment_then(turn), environment(services.home, own))


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """One line for each difference in what both recorded."""
    lines = []
    for key, name in (("git_commit", "git commit"), ("python", "python")):
        if key in before and before[key] != after.get(key):
            lines.append(f"{name} {_short(before[key])} -> {_short(after.get(key))}")
    models = (
        f"model {old} -> {new or 'none'}" for _, old, new in _changed_in("models", before, after)
    )
    lines += dict.fromkeys(models)  # most phases share one
    if before.get("git_commit") == after.get("git_commit") and after.get("git_dirty"):
        was = "was clean then" if before.get("git_dirty") is False else "what is in them is unknown"
        lines.append(f"uncommitted changes ({was})")
    packages = _changed_in("packages", before, after)
    lines += [f"{package} {old} -> {new or 'gone'}" for package, old, new in packages]
    if "config_digest" in before and before["config_digest"] != after["config_digest"]:
        lines.append("configuration")
    lines += [f"tool module {name}" for name, _, _ in _changed_in("tool_modules", before, after)]
    read = before.get("recipes") or {}
    # One that could not be read is in neither; a journal that lists none proves nothing.
    changed = (name for name in NAMES if read and read.get(name) != after["recipes"].get(name))
    return lines + [f"recipe {name}" for name in changed]


def _changed_in(
    key: str, before: dict[str, Any], after: dict[str, Any]
) -> Iterator[tuple[str, str, str | None]]:
    """What has changed of those that were there before: its name, then, now."""
    now = after.get(key) or {}
    for name, old in (before.get(key) or {}).items():
        if now.get(name) != old:
            yield name, old, now.get(name)


def _short(value: object) -> str:
    return str(value)[:SHOWN] if value else "none"
