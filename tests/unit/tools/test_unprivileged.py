"""What a user may not read: the tests drop root for as long as the tool runs."""

from __future__ import annotations

# asyncio loads this with its first thread, and by then the standard library may be out of reach.
import concurrent.futures.thread  # noqa: F401
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.tools.running import run
from unified_flow.retrieval.discovery import discover
from unified_flow.tools.builtin.file_search import _text, file_tools
from unified_flow.tools.builtin.roots import Roots
from unified_flow.tools.toolbox import Toolbox

_NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def docs() -> Iterator[Path]:
    """Not under tmp_path, which other users cannot enter."""
    root = Path(tempfile.mkdtemp()).resolve()
    root.chmod(0o755)
    (root / "closed.md").write_text("closed")
    (root / "closed.md").chmod(0)
    (root / "folder").mkdir()
    (root / "folder" / "a.md").write_text("a")
    (root / "folder").chmod(0)
    yield root
    (root / "folder").chmod(0o700)
    shutil.rmtree(root)


@pytest.mark.parametrize("path", ["closed.md", "folder/a.md"])
def test_permission_denied_comes_as_it_is(docs: Path, path: str) -> None:
    box = Toolbox(file_tools([docs]))
    with unprivileged(), pytest.raises(PermissionError, match="Permission denied"):
        run(box, "file.read", path=path)


def test_a_search_goes_past_it_aloud(docs: Path) -> None:
    [file] = [f for f in discover(docs).files if f.path.endswith("closed.md")]
    with unprivileged():
        assert _text(Roots([docs]), file) == (None, "permission denied")


def test_a_folder_that_cannot_be_listed_is_counted(docs: Path) -> None:
    box = Toolbox(file_tools([docs]))
    with unprivileged():
        found = run(box, "file.glob", pattern="**")
    assert found.result["skipped"] == {"permission denied": 1}
