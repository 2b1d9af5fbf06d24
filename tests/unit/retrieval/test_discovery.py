import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unified_flow.config.document_roots import resolved
from unified_flow.errors import InputError
from unified_flow.lib.printable import printable
from unified_flow.retrieval.discovery import discover


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}\n")


def shown(root: Path) -> list[str]:
    return [file.shown for file in discover(root).files]


def test_files_come_in_a_fixed_order_named_from_the_root_down(tmp_path: Path) -> None:
    write(tmp_path, "docs/b.md", "docs/a.md", "docs/sub/c.md", "docs/Z.md")

    assert shown(tmp_path / "docs") == ["docs/Z.md", "docs/a.md", "docs/b.md", "docs/sub/c.md"]


def test_a_file_may_be_named_itself_and_is_never_ignored(tmp_path: Path) -> None:
    write(tmp_path, "notes.log")
    (tmp_path / ".gitignore").write_text("*.log\n")

    assert shown(tmp_path / "notes.log") == ["notes.log"]
    assert shown(tmp_path) == [f"{tmp_path.name}/.gitignore"]


def test_version_control_caches_and_environments_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.md", ".git/config", ".ruff_cache/x", "node_modules/p/README.md",
          "env/pyvenv.cfg", "env/lib/x.py", "built/CACHEDIR.TAG", "built/x.md", ".github/b.md",
          "pkg/__pycache__/x.pyc")  # fmt: skip

    assert [Path(path).name for path in shown(tmp_path)] == ["a.md", "b.md"]


def test_what_may_hold_secrets_is_listed_and_not_read(tmp_path: Path) -> None:
    write(tmp_path, ".env", "server.pem", "a.md")

    found = discover(tmp_path)

    assert [Path(file.path).name for file in found.files] == ["a.md"]
    assert [reason for _, reason in found.skipped] == ["may hold secrets"] * 2


def test_the_rules_of_the_repository_around_the_root_hold(tmp_path: Path) -> None:
    write(tmp_path, "repo/.git/info/exclude", "repo/docs/a.md", "repo/docs/b.txt",
          "repo/docs/private.md", "repo/docs/old/c.md", "repo/docs/keep.txt")  # fmt: skip
    (tmp_path / ".gitignore").write_text("*.md\n")  # above the repository: does not count
    (tmp_path / "repo/.gitignore").write_text("docs/*.txt\n")
    (tmp_path / "repo/docs/.gitignore").write_text("!keep.txt\nold/\n.gitignore\n")
    (tmp_path / "repo/.git/info/exclude").write_text("private.md\n")

    assert shown(tmp_path / "repo/docs") == ["docs/a.md", "docs/keep.txt"]


def test_a_repository_inside_the_root_has_its_own_rules(tmp_path: Path) -> None:
    write(tmp_path, "outer/a.log", "outer/inner/b.log", "outer/inner/c.tmp")
    (tmp_path / "outer/.gitignore").write_text("*.log\n.gitignore\n")
    (tmp_path / "outer/inner/.git").mkdir()
    (tmp_path / "outer/inner/.gitignore").write_text("*.tmp\n.gitignore\n")

    assert shown(tmp_path / "outer") == ["outer/inner/b.log"]


_PATTERN = st.sampled_from(
    ["*.md", "!a.md", "/a.md", "sub/", "/sub/*", "!sub/b.md", "sub/**/c.txt", "**/deep", "b.*",
     "# comment", "\\#x", "deep/*.md", "!deep/", "*", "!*/", "!*.txt", "a?md", "[ab].md", " ", "!",
     "[z-a]", "a\\", "/"]
)  # fmt: skip


@example(top=[], sub=[], exclude=["!*/"], everywhere=["/sub/*"])
@settings(max_examples=30, deadline=None)
@given(
    top=st.lists(_PATTERN, max_size=4),
    sub=st.lists(_PATTERN, max_size=3),
    exclude=st.lists(_PATTERN, max_size=2),
    everywhere=st.lists(_PATTERN, max_size=2),
)
def test_ignores_exactly_what_git_ignores(
    tmp_path_factory: pytest.TempPathFactory,
    top: list[str],
    sub: list[str],
    exclude: list[str],
    everywhere: list[str],
) -> None:
    root = tmp_path_factory.mktemp("repo")
    (configuration := root.with_name(f"{root.name}.config") / "git").mkdir(parents=True)
    (configuration / "ignore").write_text("\n".join(everywhere))
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    write(root, "a.md", "b.md", "c.txt", "#x", "sub/a.md", "sub/b.md", "sub/deep/c.txt",
          "sub/deep/a.md", "deep/b.md", "deep/c.txt")  # fmt: skip
    (root / ".gitignore").write_text("\n".join(top))
    (root / "sub/.gitignore").write_text("\n".join(sub))
    (root / ".git/info/exclude").write_text("\n".join(exclude))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(configuration.parent))
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        git = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "--others", "--exclude-standard"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip

        expected = {name for name in git.stdout.split("\0") if name}
        assert {name.split("/", 1)[1] for name in shown(root)} == expected


def test_the_file_that_the_user_configured_for_every_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "repo/.git/HEAD", "repo/a.md", "repo/b.log", "plain/b.log")
    (tmp_path / "mine").write_text("*.log\n")
    (tmp_path / "gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    assert shown(tmp_path / "repo") == ["repo/a.md"]
    assert shown(tmp_path / "plain") == ["plain/b.log"], "as for git, which is not asked there"


def test_links_that_go_in_circles_lead_nowhere_and_are_listed(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "elsewhere/secret.md")
    (tmp_path / "docs/loop").symlink_to(tmp_path / "docs")
    (tmp_path / "docs/self").symlink_to(tmp_path / "docs/self")
    (tmp_path / "docs/gone").symlink_to(tmp_path / "nothing")
    (tmp_path / "docs/out.md").symlink_to(tmp_path / "elsewhere/secret.md")
    (tmp_path / "docs/again.md").symlink_to(tmp_path / "docs/a.md")

    found = discover(tmp_path / "docs")

    assert [file.shown for file in found.files] == ["docs/a.md"]
    assert dict(found.skipped) == {
        "docs/gone": "link to nothing",
        "docs/out.md": "link that leads out of the folder",
        "docs/self": "link that goes in a circle",
    }


def test_a_pipe_is_listed_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    assert discover(tmp_path).skipped == [(f"{tmp_path.name}/pipe.md", "not a regular file")]


def test_names_that_are_no_text_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("x")

    (file,) = discover(tmp_path).files

    assert file.shown == f"{tmp_path.name}/caf\\udce9.md"
    assert Path(file.path).read_text() == "x"
    assert printable("plain/päth") == "plain/päth"


def test_folders_may_nest_deeper_than_the_stack(tmp_path: Path) -> None:
    path = str(tmp_path)
    for _ in range(1200):
        path += "/d"
        os.mkdir(path)  # noqa: PTH102 -- pathlib cannot go that deep
    with open(path + "/a.md", "w") as file:  # noqa: PTH123
        file.write("x")

    found = discover(tmp_path)

    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)
    assert len(found.files) == 1


@pytest.mark.parametrize("bad", ["nowhere", "a\0b", "x" * 5000, "\ud800"])
def test_a_path_that_does_not_exist_is_bad_input_with_a_hint(tmp_path: Path, bad: str) -> None:
    with pytest.raises(InputError) as caught:
        resolved([str(tmp_path / bad)])

    assert caught.value.hint
    str(caught.value).encode()


def test_two_spellings_of_a_root_are_one(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "link").symlink_to("docs")

    assert resolved([tmp_path / "docs", f"{tmp_path}/docs/", tmp_path / "link"]) == [
        (tmp_path / "docs").resolve()
    ]
