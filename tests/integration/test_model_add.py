"""`unified-flow model add` against a real server: resumed, refused, told."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from unified_flow.cli.app import app
from unified_flow.config.settings import load

DATA = bytes(range(256)) * 4096  # 1 MB
SUM = hashlib.sha256(DATA).hexdigest()


class Hub:
    """Serves DATA at /model.gguf; `cut` ends a reply after so many bytes."""

    def __init__(self) -> None:
        outer = self
        self.cut: int | None = None
        self.takes_ranges = True
        self.location = ""
        self.ranges: list[str | None] = []
        self.sent = 0

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.ranges.append(self.headers["Range"])
                if self.path == "/moved.gguf":
                    self.send_response(302)
                    self.send_header("Location", outer.location)
                    self.end_headers()
                elif self.path.partition("?")[0] != "/model.gguf":
                    self.send_error(404)
                else:
                    self.send_data()

            def send_data(self) -> None:
                begin = 0
                if outer.takes_ranges and (asked := self.headers["Range"]):
                    begin = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])  # type: ignore[index]
                if begin >= len(DATA):
                    self.send_error(416)
                    return
                self.send_response(206 if begin else 200)
                if begin:
                    where = f"bytes {begin}-{len(DATA) - 1}/{len(DATA)}"
                    self.send_header("Content-Range", where)
                self.send_header("Content-Length", str(len(DATA) - begin))
                self.end_headers()
                body = DATA[begin : outer.cut]
                outer.sent += len(body)  # before the client may go on
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def hub() -> Iterator[Hub]:
    found = Hub()
    yield found
    found.server.shutdown()
    found.server.server_close()


def get(hub: Hub, into: Path, *more: str, path: str = "/model.gguf", sha256: str = SUM) -> Result:
    asked = ["model", "add", f"{hub.url}{path}", "--sha256", sha256, "--into", str(into), *more]
    return CliRunner().invoke(app, asked)


def test_a_file_is_fetched_once(hub: Hub, tmp_path: Path) -> None:
    into = tmp_path / "models"
    outcome = get(hub, into, "--json")
    assert outcome.exit_code == 0, outcome.output
    file = into / "model.gguf"
    assert file.read_bytes() == DATA
    assert list(into.iterdir()) == [file]
    whole = {"path": str(file), "bytes": len(DATA), "sha256": SUM}
    assert json.loads(outcome.stdout) == {**whole, "fetched": True}
    again = get(hub, into, "--json", sha256=f"sha256:{SUM.upper()}")
    assert json.loads(again.stdout) == {**whole, "fetched": False}
    assert hub.sent == len(DATA)


def test_it_goes_into_the_home(hub: Hub, home: Path) -> None:
    asked = ["model", "add", f"{hub.url}/model.gguf", "--sha256", SUM, "--home", str(home)]
    outcome = CliRunner().invoke(app, asked)
    assert outcome.stdout == f"{home}/models/model.gguf: 1,048,576 bytes, SHA-256 as named\n"
    (home / "unified_flow.toml").write_text('vectors = "models/model.gguf"\n')
    path = load(home).vectors.path
    assert path is not None
    assert path.is_file()


def test_it_goes_on_where_it_broke_off(hub: Hub, tmp_path: Path) -> None:
    hub.cut = 300_000
    outcome = get(hub, tmp_path)
    assert outcome.exit_code == 1
    assert f"{hub.url}/model.gguf cannot be fetched" in outcome.output
    assert "goes on from 300,000 bytes" in outcome.output
    assert [file.name for file in tmp_path.iterdir()] == ["model.gguf.part"]
    hub.cut = None
    assert get(hub, tmp_path).exit_code == 0
    assert (tmp_path / "model.gguf").read_bytes() == DATA
    assert hub.ranges == [None, "bytes=300000-"]
    assert hub.sent == len(DATA)


def test_a_server_that_sends_no_parts_sends_it_whole(hub: Hub, tmp_path: Path) -> None:
    hub.takes_ranges = False
    (tmp_path / "model.gguf.part").write_bytes(b"what came before")
    assert get(hub, tmp_path).exit_code == 0
    assert (tmp_path / "model.gguf").read_bytes() == DATA


def test_a_part_that_is_whole_needs_nothing_more(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "model.gguf.part").write_bytes(DATA)
    assert get(hub, tmp_path).exit_code == 0
    assert hub.sent == 0


@pytest.mark.parametrize("there", [b"", b"of another file", DATA + b"longer"])
def test_another_file_is_refused_and_removed(hub: Hub, tmp_path: Path, there: bytes) -> None:
    (tmp_path / "model.gguf.part").write_bytes(there)
    outcome = get(hub, tmp_path, sha256="0" * 64 if not there else SUM)
    assert outcome.exit_code == 1
    assert "refused: the SHA-256 of model.gguf is" in outcome.output
    assert list(tmp_path.iterdir()) == []


def test_another_file_of_that_name_stays(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"mine")
    outcome = get(hub, tmp_path)
    assert outcome.exit_code == 2
    assert "is another file" in outcome.output
    assert "--into" in outcome.output
    assert (tmp_path / "model.gguf").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("url", "sha256", "code", "message"),
    [
        ("{hub}/nothing.gguf?key=secret", SUM, 1, "/nothing.gguf cannot be fetched: 404"),
        ("{hub}/model.gguf", "1234", 2, "is no SHA-256"),
        ("{hub}/", SUM, 2, "names no file"),
        ("{hub}/..%2F", SUM, 2, "names no file"),
        ("ftp://127.0.0.1/model.gguf", SUM, 2, "is not fetched"),
        ("http://example.org/model.gguf", SUM, 2, "https"),
        ("https://me:word@example.org/model.gguf", SUM, 2, "user name or a password"),
        ("http://127.0.0.1:1/model.gguf", SUM, 1, "cannot be fetched"),
    ],
)
def test_what_cannot_be_had_is_told(
    hub: Hub, tmp_path: Path, url: str, sha256: str, code: int, message: str
) -> None:
    asked = ["model", "add", url.format(hub=hub.url), "--sha256", sha256, "--into", str(tmp_path)]
    outcome = CliRunner().invoke(app, asked)
    assert outcome.exit_code == code
    assert message in outcome.output
    assert "secret" not in outcome.output
    assert "word" not in outcome.output.replace("password", "")
    assert not list(tmp_path.iterdir())


def test_a_redirect_leads_nowhere_else(hub: Hub, tmp_path: Path) -> None:
    hub.location = "/model.gguf?signature=secret"
    assert get(hub, tmp_path / "here", path="/moved.gguf").exit_code == 0
    assert (tmp_path / "here" / "moved.gguf").read_bytes() == DATA
    for location in ("http://192.0.2.1/model.gguf?signature=secret", "file:///etc/passwd"):
        hub.location = location
        outcome = get(hub, tmp_path, path="/moved.gguf")
        assert outcome.exit_code == 1
        assert "which is not followed" in outcome.output
        assert "secret" not in outcome.output
    hub.location = "/moved.gguf"
    assert "maximum allowed redirects" in get(hub, tmp_path, path="/moved.gguf").output


def test_two_at_once_do_not_meet(hub: Hub, tmp_path: Path) -> None:
    with (tmp_path / "model.gguf.part").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outcome = get(hub, tmp_path)
    assert outcome.exit_code == 1
    assert "another process fetches" in outcome.output


def test_a_full_disk_is_told_and_what_came_stays(hub: Hub, tmp_path: Path) -> None:
    limited = (  # a limit on files has the same effect here, and needs no disk of its own
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000));"
        "from unified_flow.__main__ import main; main()"
    )
    asked = ["model", "add", f"{hub.url}/model.gguf", "--sha256", SUM, "--into", str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-c", limited, *asked], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1, ended.stderr
    assert "model.gguf.part cannot be written: File too large" in ended.stderr
    assert "goes on from" in ended.stderr
    assert get(hub, tmp_path).exit_code == 0
    assert (tmp_path / "model.gguf").read_bytes() == DATA
