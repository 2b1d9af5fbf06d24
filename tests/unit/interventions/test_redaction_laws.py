"""Laws of redaction, over texts put together from the parts that secrets are written with."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interventions.secrets.redaction import redact, redact_for_asker, redact_text
from interventions.secrets.rules import MASK

LONG = 20 if os.environ.get("SOAK") else 1
NAMES = (
    *("password", "api_key", "token", "tokens", "max_tokens", "Authorization", "Cookie", "API key"),
    *("my pin code", "client-secret", "identified by", "Bearer", "basic", "value", "name", "login"),
    *("mysql -p", "-u bob", "curl", "key", "author", "mein Passwort", "is", "ist", "BEGIN", "END"),
)
JOINS = (
    *("=", ": ", " = ", ":", '": "', "': '", '", "', "', '", " ", "\n", "\\n", "%3D", '"]=', ">"),
    *("</", "<", " := ", "=>", " is ", '\\": \\"', '\\\\\\"', "&quot;", ": |\n  ", "==", ", "),
    *(";", "&", "(", ")", "[", "]", "{", "}", "@", "://", "-----", "--", "$", "`", "'''", '"""'),
    *("b'", ": str = ", "%"),
)
VALUES = (
    *("hunter2Qx9", "correct horse", "None", "self.token", "get_token()", "512", "[redacted]"),
    *("str", "aGVsbG8gd29ybGQhIQ==", "ghp_9f8e7d6c5b4a39281706f5e4d3c2b1a0", "${X}", "x.y", "é"),
    *("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "must be longer", "[redacted", "12:30"),
)
texts = st.lists(st.sampled_from((*NAMES, *JOINS, *JOINS, *VALUES)), max_size=14).map("".join)

leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(texts)
@example("client-secret': '</mein Passwort := =>")
@example('token = "]=Authorization :=  is  is ')
@example("my pin codeaGVsbG8gd29ybGQhIQ==Cookie=é")
@settings(max_examples=125 * LONG, deadline=None)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once
    shown = redact_for_asker(text)
    assert redact_for_asker(shown) == shown


@given(values)
@settings(max_examples=75 * LONG, deadline=None)
def test_a_value_stays_json_of_its_shape_and_is_redacted_once(value: Any) -> None:
    once = redact(value)
    json.dumps(once, allow_nan=False)
    assert redact(once) == once
    assert has_shape_of(once, value)


def has_shape_of(clean: Any, value: Any) -> bool:
    """The same containers with as many items, or a mask in the place of one."""
    if clean == MASK:
        return True
    if isinstance(value, dict):
        return has_shape_of(list(clean.values()), list(value.values()))
    if isinstance(value, list):
        return len(clean) == len(value) and all(map(has_shape_of, clean, value))
    return not isinstance(clean, dict | list)


@pytest.mark.parametrize(
    "piece",
    [
        *("password ", "password: ", "<password ", "--password ", "api key ", "pin code ", "-u a:"),
        *("my password for ", "authorization a ", "Bearer a=", "cookie: a=b;", "value: a name: "),
        *("login a password ", "('password', '", 'password=["', "password={", "://a:", "sk-a-"),
        *("-----BEGIN PRIVATE KEY-----", "BEGIN ", "eyJ.", 'password=\\"', "%25", "x.", "mysql -p"),
    ],
)
def test_a_hostile_text_takes_linear_time(piece: str) -> None:
    """A form that looked on from each of these pieces to the end took three seconds."""
    text = piece * (30_000 // len(piece))
    started = time.process_time()
    redact_text(text, len(text))
    redact_for_asker(text)
    assert time.process_time() - started < 1
