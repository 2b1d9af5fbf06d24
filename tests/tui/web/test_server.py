"""Who is let in, and what the page may load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.tui.web.serving import serving

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("home")) as found:
        yield found


def _root(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def test_it_listens_on_loopback_and_nothing_else(address: str) -> None:
    assert urlsplit(address).hostname == "127.0.0.1"
    assert len(address.rpartition("token=")[2]) >= 32


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/ws/wrong", "/ws/", "/ws"])
def test_without_the_token_nobody_is_let_in(address: str, path: str) -> None:
    refused = httpx.get(_root(address) + path, headers=UPGRADE if "ws" in path else {})
    assert refused.status_code == 403
    assert "token" in refused.text


def test_a_page_elsewhere_is_not_let_in(address: str) -> None:
    token = address.rpartition("=")[2]
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert httpx.get(address, headers=headers).status_code == 403
        socket = f"{_root(address)}/ws/{token}"
        assert httpx.get(socket, headers={**UPGRADE, **headers}).status_code == 403


def test_the_page_names_no_other_host_and_may_load_from_none(address: str) -> None:
    page = httpx.get(address)
    assert page.status_code == 200
    own = urlsplit(address).netloc
    assert {urlsplit(found).netloc for found in re.findall(r"\w+://[^\"' ]+", page.text)} == {own}
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["Referrer-Policy"] == "no-referrer"
    for path in re.findall(r'(?:src|href)="(/[^"]+)"', page.text):
        assert httpx.get(_root(address) + path).status_code == 200


def test_what_is_not_there(address: str, tmp_path: Path) -> None:
    assert httpx.get(f"{_root(address)}/static/../server.py").status_code in (403, 404)
    assert httpx.get(f"{_root(address)}/static/").status_code in (403, 404)
    nothing = httpx.get(f"{_root(address)}/nothing", params={"token": address.rpartition("=")[2]})
    assert nothing.status_code == 404
    assert nothing.headers["Content-Security-Policy"]


def test_a_link_to_one_entry_takes_an_id_and_nothing_else(address: str) -> None:
    token = address.rpartition("=")[2]
    page = httpx.get(address, params={"token": token, "id": "int_1_0a0b0c"})
    assert f"/ws/{token}/int_1_0a0b0c" in page.text
    for wrong in ("a b", "x;ls", "../x", '"'):
        refused = httpx.get(address, params={"token": token, "id": wrong})
        assert refused.status_code == 403
        assert refused.headers["Content-Security-Policy"]
