from __future__ import annotations

import json
import os
import string
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from interventions import InterventionQueue
from interventions.home import queue_file
from interventions.secrets.bounds import MAX_TEXT
from interventions.secrets.names import NameKind, name_kind
from interventions.secrets.redaction import OF_THE_QUEUE, redact, redact_text

# Put together here, so that no scanner takes this file for a leak.
LONG = 20 if os.environ.get("SOAK") else 1
SECRETS = [
    "sk-" + "proj-Ab1Cd2Ef3Gh4Ij5Kl6",
    "sk-" + "ant-api03-Zz9Yy8Xx7Ww6Vv5",
    "Bearer " + "mF9zB5f41JqM12ab",
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_" + "11ABCDEFG0123456789_abcdefghijk",
    "glpat-" + "ABCDEFGHIJ1234567890",
    "xoxb-" + "123456789012-abcdefghijkl",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "hf_" + "abcdefghijklmnopqrstuvwxyz",
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "postgres://" + "admin:hunter2pass@db.internal/x",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n-----END RSA PRIVATE KEY-----",
    "password=" + "correct-horse",
    "api_key: " + "'abc123def'",
    '"client_secret": "' + 'zyxwv98765"',
    "https://x.org/cb?access_token=" + "abcdef123456",
    "Authorization: Basic " + "dXNlcjpwYXNzd29yZA==",
    "Cookie: sid=" + "s3cr3tsession",
]
CORES = [
    "Ab1Cd2Ef3Gh4Ij5Kl6",
    "Zz9Yy8Xx7Ww6Vv5",
    "mF9zB5f41JqM12ab",
    "eyJzdWIiOiIxIn0",
    "IOSFODNN7EXAMPLE",
    "16C7e42F292c6912",
    "11ABCDEFG0123456789",
    "ABCDEFGHIJ1234567890",
    "123456789012-abcdef",
    "SyA1234567890",
    "abcdefghijklmnopqrstuvwxyz",
    "4eC39HqLyjWDarjtT1zdp7dc",
    "hunter2pass",
    "MIIEpAIBAAKCAQEA7",
    "correct-horse",
    "abc123def",
    "zyxwv98765",
    "abcdef123456",
    "dXNlcjpwYXNzd29yZA",
    "s3cr3tsession",
]
LOOK_ALIKES = [
    "session_id=abc123",
    "prompt_tokens=512, max_tokens: 100",
    "author: Jane Doe",
    "Unexpected token: comma",
    "the token count is 12",
    "a basic understanding of tokenization",
    "scikit-learn and sk-learn are risk-free",
    "task-1234567890abcdef failed",
    "http://localhost:8080/v1/chat",
    "mailto: bob@example.com at 10:30",
    "KeyError: 'planner'",
    "secretary general",
]
HARMLESS_KEYS = [
    "session_id",
    "prompt_tokens",
    "completion_tokens",
    "max_tokens",
    "token_count",
    "author",
    "authority",
    "tokenizer",
    "keyboard",
    "primary_key",
    "key",
    "monkey",
    "passenger",
    "compass",
    "auth_type",
    "request_id",
]
SECRET_KEYS = [
    "accessToken",
    "client-secret",
    "X-Api-Key",
    "OPENAI_API_KEY",
    "password",
    "dbPassword",
    "db_passwd",
    "Authorization",
    "refresh_token",
    "authtoken",
    "apikey",
    "set-cookie",
    "aws_secret_access_key",
    "PRIVATE KEY",
    "connectionString",
]


@pytest.mark.parametrize(("secret", "core"), list(zip(SECRETS, CORES, strict=True)))
def test_a_secret_in_text_is_replaced(secret: str, core: str) -> None:
    clean = redact_text(f"request failed for {secret} after 3 tries")
    assert core not in clean
    assert "request failed for" in clean


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_secret_key_hides_its_value(key: str) -> None:
    assert redact({key: "plainvalue", "n": {key: ["plainvalue"]}}) == {
        key: "[redacted]",
        "n": {key: "[redacted]"},
    }


@pytest.mark.parametrize("key", HARMLESS_KEYS)
def test_a_harmless_key_keeps_its_value(key: str) -> None:
    assert redact({key: "plain"}) == {key: "plain"}


def test_source_code_stays_readable() -> None:
    code = "token = next(tokens)\nself.key = os.environ['KEY']\npassword = None"
    assert redact_text(code) == code
    assert "hunter2" not in redact_text("password = 'hunter2'")


def test_a_secret_across_the_cut_is_not_half_shown() -> None:
    secret = "sk-" + "A1" * 40
    clean = redact_text("x" * (MAX_TEXT - 10) + " " + secret)
    assert "A1A1" not in clean


def test_models_and_dataclasses_are_redacted_by_field() -> None:
    class Login(BaseModel):
        user: str
        password: str

    assert redact(Login(user="bob", password="x9")) == {"user": "bob", "password": "[redacted]"}


def test_an_unterminated_private_key_is_replaced_to_the_end() -> None:
    assert "MIIE" not in redact_text("-----BEGIN PRIVATE KEY-----\nMIIEabc\nMIIEdef")


def test_what_is_not_json_becomes_json() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    class HostileMapping(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("no")

    loop: dict[Any, Any] = {}
    loop["again"] = loop
    clean = redact(
        {
            "loop": loop,
            "bytes": b"\xff\xfe",
            "nan": float("nan"),
            "inf": float("-inf"),
            1: "number key",
            (1, 2): "tuple key",
            None: "none key",
            "hostile": Hostile(),
            "mapping": HostileMapping(a=1),
            "set": {3, 1, 2},
            "big": "y" * 10_000_000,
            "huge": 10**5000,
            "surrogate": "a\ud800b",
            "null": "a\x00b",
        }
    )
    text = json.dumps(clean, allow_nan=False)
    assert len(text) < 70_000
    text.encode("utf-8")
    assert clean["loop"] == {"again": "[cycle]"}
    assert clean["hostile"] == "<Hostile: repr raised RuntimeError>"
    assert clean["mapping"] == "<HostileMapping: reading it raised RuntimeError>"
    assert clean["set"] == [1, 2, 3]
    assert clean["nan"] == "nan"
    assert clean["big"].endswith("more characters]")


def test_too_deep_and_too_many_are_replaced_not_passed_through() -> None:
    deep: Any = "bottom-secret"
    for _ in range(OF_THE_QUEUE.depth + 3):
        deep = [deep]
    assert "bottom-secret" not in json.dumps(redact(deep))
    wide = redact({f"k{number}": f"v{number}" for number in range(1000)})
    assert "v999" not in json.dumps(wide)


keys = st.text(string.ascii_lowercase, min_size=1, max_size=6).filter(
    lambda k: name_kind(k) is not NameKind.SECRET
)
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=30)


@st.composite
def planted(draw: st.DrawFn) -> tuple[Any, str]:
    number = draw(st.integers(0, len(SECRETS) - 1))
    value: Any = draw(
        st.sampled_from([SECRETS[number], f"so {SECRETS[number]} it was", [SECRETS[number]]])
    )
    for _ in range(draw(st.integers(0, 6))):
        around = draw(st.dictionaries(keys, leaves, max_size=3))
        value = draw(st.sampled_from([[1, value], (value,), {**around, "inner": value}]))
    return value, CORES[number]


@given(planted())
@settings(max_examples=75 * LONG, deadline=None)
def test_planted_secrets_are_found_at_any_depth(case: tuple[Any, str]) -> None:
    value, core = case
    assert core not in json.dumps(redact(value))


nested = st.recursive(
    leaves | st.floats() | st.binary(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(keys | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(nested)
@settings(max_examples=50 * LONG, deadline=None)
def test_redaction_is_json_and_idempotent(value: Any) -> None:
    once = redact(value)
    json.dumps(once, allow_nan=False).encode("utf-8")
    assert redact(once) == once


@given(st.text(max_size=200))
@settings(max_examples=75 * LONG, deadline=None)
@example("token=[redacted]&x=1")
@example("password='[redacted]")
@example("Authorization: x")
def test_redacting_text_twice_is_redacting_it_once(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@given(st.text(string.ascii_letters + string.digits + " .,()-_/", max_size=80))
@settings(max_examples=50 * LONG, deadline=None)
def test_plain_prose_without_a_secret_form_stays(text: str) -> None:
    marks = ("sk-", "sk_", "pk_", "rk_", "eyj", "gh", "xox", "xapp", "hf_", "npm_", "pypi", "akia")
    words = ("bearer", "basic", "digest", "token", "glpat", "aiza", "ya29", "dop_", "sg.", "asia")
    more = ("abia", "acca", "whsec")
    if not any(mark in text.lower() for mark in (*marks, *words, *more)):
        assert redact_text(text) == text


class Login(NamedTuple):
    user: str
    password: str


def test_a_named_tuple_has_names() -> None:
    assert redact([Login("ada", "hunter2Qx9")]) == [{"user": "ada", "password": "[redacted]"}]


def test_a_fingerprint_of_a_caller_is_redacted(queue: InterventionQueue, home: Path, make) -> None:
    queue.put(make(fingerprint="password=hunter2Qx9"))
    assert "hunter2" not in queue_file(home).read_text()


def test_what_a_caller_says_of_a_change_is_redacted(
    queue: InterventionQueue, home: Path, make
) -> None:
    name = queue.put(make()).intervention_id
    queue.assign(name, "ada", via="cron password=hunter2Qx9")
    queue.close_retried([name], "mended", outcome="completed with password=hunter2Qx9")
    written = "".join(path.read_text() for path in (home / "shared_state").glob("*.json*"))
    assert "completed with password=[redacted]" in written
    assert "hunter2" not in written
