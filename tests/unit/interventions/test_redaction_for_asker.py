"""The same text for the person who asked, and for everybody else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interventions.secrets.redaction import redact_for_asker, redact_text

BODY = "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfnygWyF8PbnGy0AHB7MhgwMbRvI0MBZhpI0\n" * 3
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}MIIabc=\n-----END RSA PRIVATE KEY-----"
LOCKED = KEY.replace("KEY-----\nM", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,01\n\nM", 1)

# What documents say; the second half is masked where others read it.
TEXT = [
    "Authorization: Bearer <token>",
    "docs/howto/csrf.txt:12",
    "if identity_token == other_token:",
    "xoxb-your-token-here",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "pypi-publish-github-action",
    "a token starts with sk-... or eyJhbGciOi...",
    "-----BEGIN PUBLIC KEY-----\n" + BODY,
    "it begins with `-----BEGIN PRIVATE KEY-----`, then come its bytes",
    "-----BEGIN PRIVATE KEY-----\n<your key>\n-----END PRIVATE KEY-----",
]
TEXT_BY_NAME = [
    'httpx.get(url, auth=("user", "swordfish99"))',
    "create_engine('postgresql://scott:tiger@localhost/test')",
    "DATABASES = {'PASSWORD': 'mypassword'}",
    "The password of the demo is swordfish99.",
    "curl -u admin:swordfish99 --token swordfish99",
]
SECRETS = [
    "ghp_9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "sk-proj-9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-123456789012-9f8e7d6c5b4a",
    "glpat-9f8e7d6c5b4a39281706",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4",
    KEY,
    LOCKED,
    KEY.replace("\n", "\\n"),
    '"' + KEY.replace("\n", '\\n"\n    "') + '"',
    KEY.partition("MIIabc")[0],
]


@pytest.mark.parametrize("text", TEXT + TEXT_BY_NAME)
def test_what_documents_say_is_shown_to_the_person_who_asked(text: str) -> None:
    assert redact_for_asker(f"See {text}") == f"See {text}"


@pytest.mark.parametrize("text", TEXT_BY_NAME)
def test_for_others_a_name_is_enough(text: str) -> None:
    assert "[redacted]" in redact_text(text)


@pytest.mark.parametrize("secret", SECRETS)
def test_what_is_a_secret_by_itself_is_shown_to_nobody(secret: str) -> None:
    for shown in (redact_for_asker, redact_text):
        told = shown(f"It is {secret}")
        assert told.startswith("It is ")
        assert "9f8e7d6c5b4a" not in told
        assert "MIIEpAIBAAK" not in told
        assert "[redacted]" in told
    assert redact_for_asker(f"({secret.strip()}) and more").endswith(") and more")


@given(st.text(alphabet="eyJ.-_xabAKI09 \n\"'=+KEY", max_size=200))
def test_masking_again_changes_nothing(text: str) -> None:
    once = redact_for_asker(f"ghp_9f8e7d6c5b4a39281706 {text} -----BEGIN PRIVATE KEY-----\n{text}")
    assert redact_for_asker(once) == once
