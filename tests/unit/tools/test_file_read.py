from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.office import write_scan
from tests.unit.tools.running import run
from unified_flow.config.tables import DocumentSettings
from unified_flow.errors import ConfigError, FileUnusableError, PathRefusedError, ToolArgumentError
from unified_flow.tools.builtin.file_read import MAX_CHARS, MAX_FILE_BYTES
from unified_flow.tools.builtin.file_search import file_tools
from unified_flow.tools.builtin.roots import Roots
from unified_flow.tools.toolbox import Toolbox


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """docs/ may be read; secret.txt beside it may not."""
    root = tmp_path / "docs"
    (root / "deep").mkdir(parents=True)
    (root / "a.md").write_text("one\ntwo\nthree\n")
    (root / "deep" / "b.md").write_text("deep\n")
    (tmp_path / "secret.txt").write_text("secret\n")
    return root


@pytest.fixture
def box(docs: Path) -> Toolbox:
    return Toolbox(file_tools([docs]))


@pytest.mark.parametrize("path", ["a.md", "docs/a.md", "./a.md", "deep/../a.md", "docs/./a.md"])
def test_a_file_has_the_name_that_a_search_shows(box: Toolbox, path: str) -> None:
    found = run(box, "file.read", path=path)
    assert found.result == {
        "path": "docs/a.md", "start_line": 1, "end_line": 3, "total_lines": 3,
        "truncated": False, "text": "one\ntwo\nthree",
    }  # fmt: skip
    [claim] = found.claims
    assert (claim.claim, claim.source, claim.confidence) == ("one\ntwo\nthree", "docs/a.md:1", 1.0)


def test_an_absolute_path_inside_is_fine(box: Toolbox, docs: Path) -> None:
    assert run(box, "file.read", path=str(docs / "deep/b.md")).result["path"] == "docs/deep/b.md"


def test_lines_are_counted_from_one(box: Toolbox) -> None:
    found = run(box, "file.read", path="a.md", start_line=2, end_line=99)
    assert (found.result["text"], found.result["end_line"]) == ("two\nthree", 3)
    assert found.claims[0].source == "docs/a.md:2"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"path": "a.md", "start_line": 4}, "docs/a.md has 3 lines, so none from 4 on"),
        ({"path": "a.md", "start_line": 3, "end_line": 2}, "end_line is before start_line"),
        ({"path": "a.md", "start_line": 0}, "argument start_line"),
        ({"path": ""}, "argument path"),
        ({"path": "missing.md"}, "there is no file 'missing.md'"),
        ({"path": "x" * 3000}, "there is no file"),
        ({"path": "a.md/b"}, "there is no file"),
        ({"path": "deep"}, "docs/deep is a folder"),
        ({"path": "docs"}, "docs is a folder"),
    ],
)
def test_a_bad_argument_is_said(box: Toolbox, args: dict[str, object], said: str) -> None:
    with pytest.raises((ToolArgumentError, FileUnusableError), match=said) as caught:
        run(box, "file.read", **args)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "deep/../../secret.txt", "docs/../secret.txt", "../missing.txt",
     "/etc/passwd", "/nowhere/at/all", "/", "..", "/proc/self/environ", "/dev/zero",
     "a.md\0.txt", "~/../etc/passwd/../../../../etc/passwd", "../docs-other/a.md"],
)  # fmt: skip
def test_whatever_lies_outside_is_refused_whether_it_exists_or_not(
    box: Toolbox, docs: Path, path: str
) -> None:
    (docs.parent / "docs-other").mkdir()
    (docs.parent / "docs-other" / "a.md").write_text("beside")
    with pytest.raises(PathRefusedError) as caught:
        run(box, "file.read", path=path)
    assert isinstance(caught.value, PermissionError)
    assert "\0" not in str(caught.value)
    str(caught.value).encode()


def test_links_are_followed_only_inside(box: Toolbox, docs: Path, tmp_path: Path) -> None:
    (docs / "in.md").symlink_to("a.md")
    (docs / "folder").symlink_to(docs / "deep")
    assert run(box, "file.read", path="in.md").result["path"] == "docs/a.md"
    assert run(box, "file.read", path="folder/b.md").result["path"] == "docs/deep/b.md"
    (docs / "out.md").symlink_to(tmp_path / "secret.txt")
    (docs / "up").symlink_to(tmp_path)
    (docs / "chain.md").symlink_to("out.md")
    (docs / "dangling-out").symlink_to(tmp_path / "missing")
    (docs / "proc").symlink_to("/proc/self/cwd")
    for path in ("out.md", "up/secret.txt", "chain.md", "dangling-out", "proc/x", "up/docs/../x"):
        with pytest.raises(PathRefusedError):
            run(box, "file.read", path=path)
    assert run(box, "file.read", path="up/docs/a.md").result["path"] == "docs/a.md"
    (docs / "dangling-in").symlink_to("missing")
    with pytest.raises(FileUnusableError, match="no file docs/missing"):
        run(box, "file.read", path="dangling-in")
    (docs / "circle").symlink_to("circle")
    with pytest.raises(PathRefusedError, match="goes in a circle"):
        run(box, "file.read", path="circle")


def test_a_root_that_is_a_link_is_where_it_leads(tmp_path: Path, docs: Path) -> None:
    (tmp_path / "alias").symlink_to(docs)
    box = Toolbox(file_tools([tmp_path / "alias"]))
    assert run(box, "file.read", path="a.md").result["path"] == "docs/a.md"


def test_a_link_put_in_the_way_after_the_check_is_refused(docs: Path, tmp_path: Path) -> None:
    roots = Roots([docs])
    deep, direct = roots.locate("deep/b.md"), roots.locate("a.md")
    (docs / "deep").rename(docs / "moved")
    (docs / "deep").symlink_to(docs / "moved")
    with pytest.raises(PathRefusedError, match="was replaced"):
        roots.read(deep, 100)
    (docs / "a.md").unlink()
    (docs / "a.md").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(PathRefusedError, match="was replaced"):
        roots.read(direct, 100)


def test_a_race_with_a_swapping_writer_never_yields_the_secret(docs: Path, tmp_path: Path) -> None:
    roots = Roots([docs])
    stop = threading.Event()
    plain, link = docs / "plain", docs / "link"

    def swap() -> None:
        while not stop.is_set():
            plain.write_text("harmless")
            plain.replace(docs / "target")
            link.symlink_to(tmp_path / "secret.txt")
            link.replace(docs / "target")

    (docs / "target").write_text("harmless")
    writer = threading.Thread(target=swap)
    writer.start()
    outcomes = set()
    try:
        for _ in range(300):
            try:
                outcomes.add(roots.read(roots.locate("target"), 100))
            except PathRefusedError:
                outcomes.add(b"refused")
    finally:
        stop.set()
        writer.join()
    assert b"secret\n" not in outcomes
    assert outcomes <= {b"harmless", b"", b"refused"}


def test_pipes_sockets_and_devices_never_block(
    box: Toolbox, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(docs / "pipe")
    monkeypatch.chdir(docs)  # a socket's whole path may be too long
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for name in ("pipe", "socket"):
            with pytest.raises(PathRefusedError, match="a pipe, a socket or a device"):
                run(box, "file.read", path=name)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\x89PNG\r\n\x1a\n\x00\x00", "not a text file: binary"), (b"a\0b", "not a text file"),
     (b"x" * (MAX_FILE_BYTES + 1), "larger than 16 MiB")],
    ids=["image", "null", "huge"],
)  # fmt: skip
def test_what_is_no_text_is_refused_clearly(
    box: Toolbox, docs: Path, content: bytes, said: str
) -> None:
    (docs / "odd").write_bytes(content)
    with pytest.raises(FileUnusableError, match=said):
        run(box, "file.read", path="odd")


@pytest.mark.parametrize(
    ("content", "text"),
    [("åäö\n".encode(), "åäö"), ("åäö".encode("utf-16"), "åäö"), (b"\xef\xbb\xbfbom\n", "bom"),
     ("blå himmel över ängen\n".encode("cp1252"), "blå himmel över ängen"), (b"", ""),
     (b"a\r\nb\r\n", "a\nb"), (b"no end", "no end"), ("中文。\n".encode(), "中文。")],
)  # fmt: skip
def test_text_in_any_encoding(box: Toolbox, docs: Path, content: bytes, text: str) -> None:
    (docs / "t.txt").write_bytes(content)
    assert run(box, "file.read", path="t.txt").result["text"] == text


def test_a_long_file_is_cut_and_says_so(box: Toolbox, docs: Path) -> None:
    (docs / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 50_001)))
    found = run(box, "file.read", path="long.txt", start_line=100)
    assert found.result["truncated"] is True
    assert found.result["total_lines"] == 50_000
    assert len(found.result["text"]) <= MAX_CHARS
    shown = found.result["text"].split("\n")
    assert (shown[0], shown[-1]) == ("line 100", f"line {found.result['end_line']}")
    (docs / "wide.txt").write_text("x" * 100_000)
    found = run(box, "file.read", path="wide.txt")
    assert (len(found.result["text"]), found.result["truncated"]) == (MAX_CHARS, True)
    assert len(found.claims[0].claim) <= 4000


def test_every_claim_says_where_it_stands(box: Toolbox, docs: Path) -> None:
    lines = [f"line {n}" if n % 50 else "" for n in range(1, 200)]
    (docs / "many.txt").write_text("\n".join(lines))
    claims = run(box, "file.read", path="many.txt").claims
    assert len(claims) == 5
    for claim in claims:
        path, _, number = claim.source.rpartition(":")
        assert path == "docs/many.txt"
        assert claim.claim.split("\n")[0] == lines[int(number) - 1]
    assert "\n".join(claim.claim for claim in claims) == "\n".join(lines)


def test_what_is_excluded_stays_closed(docs: Path) -> None:
    box = Toolbox(file_tools([docs], exclude=[docs / "deep"]))
    with pytest.raises(PathRefusedError):
        run(box, "file.read", path="deep/b.md")


def test_several_roots_and_a_root_that_is_a_file(tmp_path: Path, docs: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.md").write_text("c")
    box = Toolbox(file_tools([docs, other, tmp_path / "secret.txt"]))
    assert run(box, "file.read", path="c.md").result["path"] == "other/c.md"
    assert run(box, "file.read", path="other/c.md").result["text"] == "c"
    assert run(box, "file.read", path="secret.txt").result["text"] == "secret"


def test_without_roots_nothing_may_be_read() -> None:
    box = Toolbox(file_tools([]))
    for path in ("a.md", "/etc/passwd"):
        with pytest.raises(PathRefusedError) as caught:
            run(box, "file.read", path=path)
        assert caught.value.hint == "Allowed: none. The setting `roots` can allow more."


def test_a_root_that_is_not_there_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used: No such file"):
        file_tools([tmp_path / "missing"])


def test_a_name_that_is_no_text_is_spelt_out(box: Toolbox, docs: Path) -> None:
    (docs / os.fsdecode(b"bad-\xff.txt")).write_text("text")
    found = run(box, "file.glob", pattern="*.txt")
    [name] = found.result["files"]
    assert name.encode().startswith(b"docs/bad-")
    with pytest.raises(ToolArgumentError, match="argument path"):
        run(box, "file.read", path="\ud800")
    with pytest.raises(PathRefusedError, match="is no path"):
        Roots([docs]).locate("\ud800")


@given(st.lists(st.sampled_from(["..", ".", "docs", "deep", "", "a.md", "up", "~", "etc"])))
def test_no_way_up_leads_out(parts: list[str]) -> None:
    here = Path(__file__).resolve().parent
    roots = Roots([here])
    try:
        located = roots.locate("/".join(parts) or ".")
    except (PathRefusedError, FileUnusableError, ToolArgumentError):
        return
    assert located.real.is_relative_to(here)


@pytest.mark.parametrize("name", [".env", ".env.local", "server.key", ".netrc"])
def test_files_that_hold_credentials_are_refused(box: Toolbox, docs: Path, name: str) -> None:
    (docs / name).write_text("PASSWORD=hunter2\n")
    with pytest.raises(PathRefusedError):
        run(box, "file.read", path=name)


def test_files_are_read_as_the_settings_for_documents_say(docs: Path, tmp_path: Path) -> None:
    write_scan(docs / "contract.pdf", 1, "The rent is nine crowns.")
    (docs / "letter.txt").write_text("Subject: Boats\n\nThey sail at noon.\n")
    program = tmp_path / "ocr.py"
    program.write_text("print('The lease ends in June.')")
    reading = DocumentSettings(
        ocr=f"{sys.executable} {program} {{file}}", formats={"letter.txt": "eml"}
    )
    box = Toolbox(file_tools([docs], reading=reading))
    assert "The lease ends in June." in run(box, "file.read", path="contract.pdf").result["text"]
    assert run(box, "file.read", path="letter.txt").result["text"].startswith("Subject: Boats")
    assert "They sail" in run(box, "file.read", path="letter.txt").result["text"]
