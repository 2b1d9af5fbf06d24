"""The commit as git's own files tell it, against what git says."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from interventions.admission.capture import head_commit

WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *WHO, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def detached(repository: Path) -> Path:
    git(repository, "checkout", "-q", "--detach")
    return repository


def packed(repository: Path) -> Path:
    git(repository, "pack-refs", "--all")
    return repository


def worktree(repository: Path) -> Path:
    other = repository.parent / "worktree"
    git(repository, "worktree", "add", "-q", "-b", "side/branch", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "in the worktree")
    return other


def subfolder(repository: Path) -> Path:
    inside = repository / "a" / "b"
    inside.mkdir(parents=True)
    return inside


def plain(repository: Path) -> Path:
    return repository


@pytest.mark.parametrize("kind", [plain, detached, packed, worktree, subfolder])
def test_the_commit_is_the_one_that_git_names(kind: Callable[[Path], Path], tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q")
    assert head_commit(repository) is None
    git(repository, "commit", "-q", "--allow-empty", "-m", "first")
    folder = kind(repository)
    assert head_commit(folder) == git(folder, "rev-parse", "HEAD")


def test_without_a_repository_nothing_is_known(tmp_path: Path) -> None:
    assert head_commit(tmp_path) is None


@pytest.mark.parametrize("kind", [plain, detached, packed, worktree])
def test_a_commit_is_seen_by_a_process_that_knew_the_one_before(
    kind: Callable[[Path], Path], tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q")
    git(repository, "commit", "-q", "--allow-empty", "-m", "first")
    folder = kind(repository)
    for words in (
        ["commit", "-q", "--allow-empty", "-m", "second"],
        ["pack-refs", "--all"],
        ["checkout", "-q", "-b", "another", "HEAD~1"],
        ["reset", "-q", "--soft", "HEAD@{1}"],
    ):
        git(folder, *words)
        assert head_commit(folder) == git(folder, "rev-parse", "HEAD")
        assert head_commit(folder) == git(folder, "rev-parse", "HEAD")
