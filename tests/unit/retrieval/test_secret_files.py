"""Keys and credentials stay out of the index and of the tools that read files."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from trustme import CA

from unified_flow.errors import PathRefusedError, RetrievalError
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_update import UpdateOptions
from unified_flow.retrieval.secret_files import is_secret, secret_in
from unified_flow.tools.builtin.file_search import file_tools

AUTHORITY = CA()
KEY = AUTHORITY.private_key_pem.bytes()
CERTIFICATE = AUTHORITY.cert_pem.bytes()
AWS = "[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = " + "wJa/" * 10
KUBE = "apiVersion: v1\nusers:\n- name: me\n  user:\n    client-key-data: LS0tLS1CRUdJTiBSU0E="


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "bread.md").write_text("# Bread\n\nBread is baked at dawn.\n")
    return root


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.open(tmp_path / "state" / "index") as opened:
        yield opened


NAMED = [
    ".aws/credentials", ".ssh/known_hosts", ".ssh/config", "keys/id_rsa", "id_ed25519.pub",
    ".git-credentials", ".kube/config", "main.tfstate", "secrets.yaml", "secrets.toml", "prod.env",
    ".env", ".env.local", "server.pem", "server.key", ".netrc",
]  # fmt: skip


def test_names_that_say_it(index: Index, project: Path) -> None:
    for name in NAMED:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("zeppelin\n")
    report = index.update([project])
    assert report.files == 1
    assert {reason for _, reason in report.skipped} == {"may hold secrets"}
    said = {path.removeprefix("project/") for path, _ in report.skipped}
    assert all(name in said or name.split("/")[0] in said for name in NAMED)
    assert index.search("zeppelin") == []


@pytest.mark.parametrize(
    "name",
    ["environment.md", "id_mapping.md", "id_token.py", "secrets.md", "secrets.rst", "keys.txt",
     "src/kube/config", "terraform.tf", "env", "monkey.txt",
     "id_verification/page.md", "id_card"],
)  # fmt: skip
def test_names_that_only_sound_like_it(name: str) -> None:
    assert not is_secret(f"project/{name}")


def test_what_is_above_the_root_says_nothing_and_a_folder_is_no_key(
    index: Index, tmp_path: Path
) -> None:
    root = tmp_path / ".git" / "docs"
    (root / "id_rsa").mkdir(parents=True)
    (root / "id_rsa" / "pier.md").write_text("# Pier\n\nThe pier is of oak.\n")
    assert index.update([root]).files == 1
    read, *_ = file_tools([root])
    shown = asyncio.run(read.run(read.arguments(path="id_rsa/pier.md"))).result
    assert "of oak" in json.dumps(shown)


@pytest.mark.parametrize(
    ("content", "held"),
    [
        (KEY, "a private key"),
        (KEY + CERTIFICATE * 9, "a private key"),
        (json.dumps({"type": "service_account", "private_key": KEY.decode()}).encode(),
         "a private key"),
        (AWS.encode(), "cloud credentials"),
        (f"export AWS_SECRET_ACCESS_KEY={'wJa/' * 10}\n".encode(), "cloud credentials"),
        (KUBE.encode(), "cloud credentials"),
    ],
)  # fmt: skip
def test_content_that_says_it(index: Index, project: Path, content: bytes, held: str) -> None:
    (project / "notes.txt").write_bytes(content)
    report = index.update([project])
    assert report.skipped == (("project/notes.txt", f"may hold secrets: {held}"),)


def test_a_key_of_ssh_keygen(project: Path, tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen")
    key = tmp_path / "deploy"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    assert secret_in(key.read_bytes(), "") == "a private key"


def test_a_page_that_shows_a_key_or_a_setting_is_a_document() -> None:
    page = "How to make a key with openssl, and where to put it.\n" * 80
    assert secret_in(page.encode() + KEY, ".md") is None
    assert (
        secret_in(f"Set it in your profile:\n\n    {AWS}\n\nThen try it.\n".encode(), ".txt")
        is None
    )
    assert secret_in(b" \n\t" * 30_000 + b"aws_secret_access_key", "") is None


def test_file_tools_keep_to_the_same_list(project: Path) -> None:
    for name, content in ((".aws/credentials", AWS), (".git/config", "zeppelin"), ("a.env", "x=1")):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(content)
    (project / "deploy.txt").write_bytes(KEY + b"zeppelin")
    read, glob, grep = file_tools([project])

    def run(tool, **given):
        return asyncio.run(tool.run(tool.arguments(**given))).result

    for name in (".aws/credentials", ".git/config", "a.env", "deploy.txt"):
        with pytest.raises(PathRefusedError):
            run(read, path=name)
    assert "project/deploy.txt" in run(glob, pattern="*")["files"]
    assert not any(".aws" in path or ".git" in path for path in run(glob, pattern="*")["files"])
    found = run(grep, pattern="zeppelin|aws_secret")
    assert found["matches"] == []
    assert found["skipped"] == {"may hold secrets": 3}


def test_a_file_that_is_named_is_meant(index: Index, project: Path) -> None:
    (project / ".gitignore").write_text("*.env\n")
    (env := project / "prod.env").write_text("ZEPPELIN_PORT=4711\n")
    (notes := project / "notes.txt").write_bytes(b"The walrus key.\n" + KEY)
    assert index.update([project]).files == 2  # .gitignore is one

    report = index.update([env, notes])
    assert (report.files, report.skipped) == (2, ())
    inside = index.within([project])
    assert inside.search("zeppelin port")[0].text == "ZEPPELIN_PORT=4711"
    assert inside.search("walrus")
    env.write_text("ZEPPELIN_PORT=4712\n")
    assert inside.update([project]).changed == 1
    assert "4712" in inside.search("zeppelin port")[0].text
    assert inside.update([project], UpdateOptions(rebuild=True)).skipped == ()
    assert inside.search("walrus")

    inside.forget([env, notes])
    assert inside.update([project]).files == 2
    assert inside.search("zeppelin walrus") == []


@pytest.mark.parametrize("paths", ["named", "remembered"])
def test_an_emptied_root_is_a_disk_that_is_not_mounted(
    index: Index, project: Path, tmp_path: Path, paths: str
) -> None:
    (tmp_path / "new").mkdir()
    index.update([project])
    (project / "bread.md").rename(tmp_path / "bread.md")
    with pytest.raises(RetrievalError, match="not there any more") as caught:
        index.update([project] if paths == "named" else None)
    assert "not mounted" in str(caught.value.hint)
    assert index.search("bread")
    (tmp_path / "bread.md").rename(project / "bread.md")
    assert index.update([project, tmp_path / "new"]).files == 1


def test_an_emptied_root_survives_a_version_that_builds_all_anew(
    index: Index, project: Path
) -> None:
    index.update([project])
    (project / "bread.md").unlink()
    with pytest.raises(RetrievalError):
        index.update([project], UpdateOptions(rebuild=True))
    assert index.search("bread")
