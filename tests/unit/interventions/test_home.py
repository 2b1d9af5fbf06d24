from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from interventions import home


def test_the_flag_wins_over_the_environment_and_the_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = tmp_path / "project"
    (marked / "shared_state").mkdir(parents=True)
    inside = marked / "deep" / "er"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert home.find_home() == marked
    monkeypatch.setenv("UNIFIED_FLOW_HOME", str(tmp_path / "env"))
    assert home.find_home() == tmp_path / "env"
    assert home.find_home(tmp_path / "flag") == tmp_path / "flag"


def test_a_settings_file_marks_a_home_and_the_nearest_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer, inner = tmp_path / "a", tmp_path / "a" / "b"
    (outer / "shared_state").mkdir(parents=True)
    inner.mkdir()
    (inner / "unified_flow.toml").write_text("")
    monkeypatch.chdir(inner)
    assert home.find_home() == inner


def test_without_a_mark_it_is_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert home.find_home() == tmp_path


def test_paths_are_those_of_the_rulings(tmp_path: Path) -> None:
    day = date(2026, 1, 4)
    assert [
        path.relative_to(tmp_path).as_posix()
        for path in (
            home.queue_file(tmp_path),
            home.archive_file(tmp_path),
            home.transitions_file(tmp_path),
            home.error_log(tmp_path, day),
            home.emergency_log(tmp_path, day),
        )
    ] == [
        "shared_state/intervention_queue.json",
        "shared_state/intervention_archive.jsonl",
        "shared_state/intervention_transitions.jsonl",
        "logs/errors/2026-01-04.jsonl",
        "logs/errors/emergency_2026-01-04.jsonl",
    ]


def test_what_it_creates_is_private(queue, make, home: Path) -> None:
    queue.put(make())
    queue.resolve(queue.entries()[0]["id"], "done")
    for path in home.rglob("*"):
        mode = path.stat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_finding_a_home_loads_no_pydantic() -> None:
    code = (
        "import interventions, interventions.home, interventions.secrets.redaction, sys;"
        "interventions.home.find_home();"
        "print([m for m in ('pydantic', 'filelock', 'typer', 'rich') if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
