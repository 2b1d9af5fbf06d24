"""Which files git would ignore: .gitignore at every level, and .git/info/exclude.

Rules of the user's own git configuration (core.excludesFile) do not count, so that an index
does not depend on who makes it; nor can it be seen here that an ignored file is tracked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


@dataclass(frozen=True)
class Rules:
    """The rules in force in one folder: (folder they are relative to, spec), innermost last."""

    layers: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def ignore(self, path: str, is_folder: bool) -> bool:
        for base, spec in reversed(self.layers):
            relative = path[len(base) :] + ("/" if is_folder else "")
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return verdict
        return False

    def entering(self, folder: str) -> Rules:
        """The rules inside `folder`; a repository within another one starts anew."""
        exclude = _exclude_file(folder)
        layers = self.layers if exclude is None else ()
        for file in filter(None, (exclude, Path(folder, ".gitignore"))):
            if spec := _spec(file):
                base = folder if folder.endswith("/") else folder + "/"
                layers = (*layers, (base, spec))
        return self if layers == self.layers else Rules(layers)


def rules_above(folder: str) -> Rules:
    """What the repository around `folder`, if there is one, says on the way down to it."""
    way = [Path(folder), *Path(folder).parents]
    top = next((i for i, each in enumerate(way) if (each / ".git").exists()), 0)
    rules = Rules()
    for each in reversed(way[1 : top + 1]):
        rules = rules.entering(str(each))
    return rules


def _spec(file: Path) -> GitIgnoreSpec | None:
    try:
        text = file.read_bytes().decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
        return None
    if not text.strip():
        return None
    from pathspec import GitIgnoreSpec  # 16 ms, and many folders have no rules

    return GitIgnoreSpec.from_lines(text.removeprefix("\ufeff").splitlines())


def _exclude_file(folder: str) -> Path | None:
    """The repository's own exclude file if `folder` is the top of one."""
    git = Path(folder, ".git")
    if git.is_file():  # a worktree or submodule: "gitdir: PATH"
        link = git.read_text(encoding="utf-8", errors="surrogateescape").partition(":")[2].strip()
        git = (git.parent / link).resolve()
        common = git / "commondir"
        if common.is_file():
            git = (git / common.read_text(encoding="utf-8").strip()).resolve()
    return git / "info" / "exclude" if git.is_dir() else None
