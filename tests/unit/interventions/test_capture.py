from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from interventions import InterventionRequest
from interventions.admission.capture import capture, environment, is_dirty


def _boom() -> None:
    first = 1
    second = 2
    third = 3
    raise LookupError(f"sum {first + second + third}")  # the line that failed
    # after one
    # after two
    # after three


def test_own_frames_come_first_with_five_source_lines_either_side() -> None:
    def through_a_library() -> None:
        json.loads("[1]", object_hook=None, parse_int=lambda text: _boom())

    with pytest.raises(LookupError) as caught:
        through_a_library()
    captured = capture(caught.value)
    lines = captured["traceback"].split("\n")
    assert lines[0] == "LookupError: sum 6"
    assert "test_capture.py" in lines[1]
    assert "in _boom" in lines[1]
    at = next(n for n, line in enumerate(lines) if line.lstrip().startswith(">"))
    assert "the line that failed" in lines[at]
    assert "def _boom" in lines[at - 4]
    assert len([line for line in lines[2:13] if " | " in line]) == 11
    libraries = captured["traceback"].index("In libraries")
    assert "decoder.py" in captured["traceback"][libraries:]
    assert captured["traceback"].rindex("test_capture.py") < libraries
    assert captured["culprit"].endswith("test_capture:_boom")
    assert captured["location"].startswith(__file__)


def test_causes_notes_and_groups_are_told() -> None:
    def raise_all() -> None:
        try:
            try:
                raise KeyError("inner")
            except KeyError as error:
                raise ValueError("outer") from error
        except ValueError as error:
            error.add_note("try another key")
            raise ExceptionGroup("both", [error, OSError("disk")]) from error

    with pytest.raises(ExceptionGroup) as caught:
        raise_all()
    text = capture(caught.value)["traceback"]
    for part in ("Caused by:", "KeyError: 'inner'", "note: try another key", "OSError: disk"):
        assert part in text


def test_an_exception_that_cannot_be_shown_is_no_second_failure() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    request = InterventionRequest.from_exception(MuteError(), phase="p", session_id="s")
    assert "MuteError: str raised RuntimeError" in request.error_message


def test_the_source_is_that_of_the_moment(tmp_path: Path) -> None:
    script = tmp_path / "mod.py"
    script.write_text("def run():\n    raise ValueError('old line')\n")
    scope: dict[str, object] = {}
    exec(compile(script.read_text(), str(script), "exec"), scope)
    with pytest.raises(ValueError, match="old line") as caught:
        scope["run"]()  # type: ignore[operator]
    text = capture(caught.value)["traceback"]
    script.write_text("# edited since\n")
    assert "raise ValueError('old line')" in text


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_git_state_follows_commits_and_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _git(tmp_path, "init", "-q")
    (tmp_path / "a.txt").write_text("1")
    _git(tmp_path, "add", "a.txt")
    _git(tmp_path, "commit", "-qm", "one")
    first = environment(tmp_path)
    assert first["git_commit"] == _git(tmp_path, "rev-parse", "HEAD")
    assert first["git_dirty"] is False
    with monkeypatch.context() as without_git:
        without_git.setenv("PATH", "")
        assert is_dirty(tmp_path) is False  # git is not asked again
    (tmp_path / "a.txt").write_text("2")
    _git(tmp_path, "add", "a.txt")
    assert is_dirty(tmp_path) is True
    _git(tmp_path, "commit", "-qm", "two")
    second = environment(tmp_path)
    assert second["git_commit"] == _git(tmp_path, "rev-parse", "HEAD") != first["git_commit"]
    assert second["git_dirty"] is False


def test_no_repository_is_no_error(tmp_path: Path) -> None:
    found = environment(tmp_path)
    assert (found["git_commit"], found["git_dirty"]) == (None, None)


def test_the_environment_has_versions_and_what_the_caller_knows() -> None:
    request = InterventionRequest.from_exception(
        ValueError("x"), phase="p", session_id="s", environment={"config_hash": "abc"}
    )
    assert request.environment["config_hash"] == "abc"
    assert request.environment["packages"]["unified-flow"]
    assert {"git_commit", "git_dirty", "python"} <= set(request.environment)


def test_a_neighbour_of_this_package_is_not_this_package() -> None:
    from interventions.admission import capture

    own = Path(capture.__file__).parent.parent
    assert not capture._is_in_app(f"{own}/queue.py")
    assert capture._is_in_app(f"{own}_of_mine/queue.py")
