"""Recipes: one file a phase, with its prompt, role, token budget and the sections it reads.

A recipe is TOML between two `+++` lines, then the prompt. `<home>/recipes/NAME.md` (or the
folder that the setting `recipes` names) stands in for the one in the package. A small model gets
the one in the folder `small/`, if there is one, else the same as a large model.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from unified_flow.errors import RecipeError
from unified_flow.lib.printable import brief_repr
from unified_flow.turns import sections

PACKAGED = Path(__file__).with_name("recipes")
SMALL = "small"
FENCE = "+++"

BUDGETED = sections.NAMES | {sections.PASSAGES}

Role = Literal["reflex", "mind", "voice", "none"]


class Head(BaseModel):
    """`token_budget` bounds what the phase writes, in tokens; `budgets` what it is shown of a
    section (`models/prompt.py`). `top_p` is the share of probability that is drawn from,
    whatever the temperature. `model` overrides the role's. `rules` says that a small model leaves
    the phase to rules, which measure better here.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Role
    temperature: Annotated[float, Field(ge=0.0, le=2.0)]
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    token_budget: Annotated[int, Field(ge=1)]
    reads: frozenset[str]
    budgets: dict[str, Annotated[int, Field(ge=1)]] = {}
    model: str | None = None
    rules: bool = False

    @field_validator("reads")
    @classmethod
    def _sections_exist(cls, reads: frozenset[str]) -> frozenset[str]:
        if unknown := sorted(reads - sections.NAMES):
            raise ValueError(f"no section is called {', '.join(unknown)}")
        return reads

    @field_validator("budgets")
    @classmethod
    def _budgets_are_of_something(cls, budgets: dict[str, int]) -> dict[str, int]:
        if unknown := sorted(budgets.keys() - BUDGETED):
            known = ", ".join(sorted(BUDGETED))
            raise ValueError(f"there is no budget for {', '.join(unknown)}: there is for {known}")
        return budgets


@dataclass(frozen=True)
class Recipe:
    path: Path
    digest: str
    head: Head
    prompt: str


def load(phase: str, override: Path | None, *, small: bool = False) -> Recipe:
    """The recipe of `phase`, for a small model or a large one. Raises RecipeError naming the file
    and the line.

    The project's files are looked at every time, so that a server works by what they say now.
    """
    names = [f"{SMALL}/{phase}.md", f"{phase}.md"] if small else [f"{phase}.md"]
    for folder, look in ((override, _of_file), (PACKAGED, _packaged)):
        for name in names if folder is not None else ():
            if (found := look(f"{folder}/{name}")) is not None:
                return found
    raise RecipeError(
        f"{PACKAGED / phase}.md:1: there is no recipe for {phase}",
        hint="restore the file, or reinstall the package",
    )


def _of_file(path: str) -> Recipe | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - in every turn
        if not S_ISREG(found.st_mode):
            raise RecipeError(f"{path}:1: the recipe is not a regular file")
        return _read(path, found.st_mtime_ns, found.st_size)
    except (OSError, UnicodeDecodeError) as exc:
        if isinstance(exc, FileNotFoundError) and not os.path.islink(path):  # noqa: PTH114
            return None
        raise RecipeError(f"{path}:1: the recipe cannot be read: {exc}") from exc


_packaged = cache(_of_file)


@lru_cache(maxsize=64)
def _read(name: str, mtime_ns: int, size: int) -> Recipe:
    path = Path(name)
    text = path.read_text(encoding="utf-8")
    head, prompt = _split(path, text)
    try:
        parsed = Head.model_validate(tomllib.loads(head))
    except tomllib.TOMLDecodeError as exc:
        line = int(found[1]) if (found := re.search(r"at line (\d+)", str(exc))) else _end(head)
        raise RecipeError(f"{path}:{line + 1}: {exc}", hint="mend that line") from exc
    except ValidationError as exc:
        raise _misfit(path, head, exc) from exc
    if not prompt.strip() and parsed.role != "none":
        raise RecipeError(f"{path}:{_end(text)}: the prompt after the second {FENCE} is empty")
    return Recipe(path, hashlib.sha256(text.encode()).hexdigest(), parsed, prompt.strip())


def _split(path: Path, text: str) -> tuple[str, str]:
    lines = text.splitlines(keepends=True)
    fences = [number for number, line in enumerate(lines) if line.rstrip() == FENCE]
    if len(fences) < 2 or fences[0] != 0:
        raise RecipeError(
            f"{path}:1: a recipe begins with settings between two {FENCE} lines",
            hint=f"compare it with {PACKAGED / path.name}",
        )
    return "".join(lines[1 : fences[1]]), "".join(lines[fences[1] + 1 :])


def _misfit(path: Path, head: str, exc: ValidationError) -> RecipeError:
    # A misspelt key first: it is why another one is missing.
    found = sorted(exc.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    first = found[0]
    key = str(first["loc"][0])
    line = next(
        (n for n, text in enumerate(head.splitlines(), 2) if re.match(rf"\s*{key}\s*=", text)), 1
    )
    known = key in Head.model_fields and first["type"] != "missing"
    hint = "mend that line" if known else f"settings are {', '.join(Head.model_fields)}"
    given = f", not {brief_repr(first['input'], 40)}" if known else ""
    return RecipeError(f"{path}:{line}: {key}: {first['msg'].lower()}{given}", hint=hint)


def _end(text: str) -> int:
    return max(1, text.count("\n"))
