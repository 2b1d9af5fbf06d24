"""The wheel and the sdist as somebody else gets them: built, installed and used in an environment
of their own. PYTHON names another interpreter to try."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parents[2]
PACKAGES = ("unified_flow", "interventions", "monitor")
QUIET = ("-q", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt"))


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By suffix; the wheel is built of the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True)
    return {path.suffix: path for path in folder.iterdir()}


@pytest.fixture(scope="session")
def programs(distributions: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that holds the wheel and what it requires."""
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([os.environ.get("PYTHON", sys.executable), "-m", "venv", place], check=True)
    wheel = str(distributions[".whl"])
    subprocess.run([place / "bin/pip", "install", *QUIET, wheel], check=True)
    return place / "bin"


def run(program: Path, *words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *words], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def test_the_wheel_holds_the_packages_whole_and_nothing_else(
    distributions: dict[str, Path],
) -> None:
    with zipfile.ZipFile(distributions[".whl"]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    ours = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == ours


def test_the_sdist_holds_no_state_and_no_environment(distributions: dict[str, Path]) -> None:
    with tarfile.open(distributions[".gz"]) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    tops = {name.partition("/")[0] for name in held}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "tests"} <= tops
    assert not {".venv", ".ci", ".git", "dist"} & tops
    assert not {top for top in tops if top.endswith("_cache")}
    assert {name for name in held if name.startswith(("shared_state/", "logs/"))} <= {
        "shared_state/README.md",
        "logs/README.md",
    }


def test_it_answers_fails_and_is_triaged_without_the_repository(
    programs: Path, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/robots.md").write_text("# Robots\n\nA gripper is the hand of a robot.\n")
    answer = run(programs / "unified-flow", "ask", "What is a gripper?", "--json", cwd=tmp_path)
    assert json.loads(answer.stdout)["abstained"] is True
    asked = ("ask", "What is a gripper?", "--docs", "docs")
    answer = run(programs / "unified-flow", *asked, cwd=tmp_path)
    assert "hand of a robot" in answer.stdout, answer.stderr
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/planner.md").write_text("Plan well.\n")
    assert run(programs / "unified-flow", *asked, cwd=tmp_path).returncode == 1
    page = run(programs / "interventions", "report", cwd=tmp_path)
    assert "RecipeError" in page.stdout
    (tmp_path / "recipes/planner.md").unlink()
    mended = ("resolve", "last", "--note", "mended", "--retry")
    assert run(programs / "interventions", *mended, cwd=tmp_path).returncode == 0
    assert run(programs / "monitor", "--version", cwd=tmp_path).stdout.startswith("monitor ")
    found = run(programs / "python", "-c", "import unified_flow as f; print(f)", cwd=tmp_path)
    assert "site-packages" in found.stdout


@pytest.mark.parametrize("command", ["mcp", "serve"])
def test_an_extra_is_installed_as_the_error_says(
    programs: Path, tmp_path: Path, command: str
) -> None:
    refused = run(programs / "unified-flow", command, cwd=tmp_path)
    assert refused.returncode == 2
    hint = refused.stderr.partition("hint: pip install ")[2].strip().strip("'")
    assert hint == f"unified-flow[{command}]"
    # No index needs to know the package itself: it is there.
    subprocess.run([programs / "pip", "install", *QUIET, hint], check=True)
    if command == "mcp":
        assert run(programs / "unified-flow", "mcp", cwd=tmp_path).returncode == 0
        return
    with subprocess.Popen(
        [programs / "unified-flow", "serve", "--port", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as service:
        assert service.stdout
        assert service.stdout.readline().startswith("listening on ")
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) in (0, -signal.SIGTERM)
