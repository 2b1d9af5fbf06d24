from __future__ import annotations

import base64
import json
import os
import re
import time
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interventions.secrets import rules
from interventions.secrets.redaction import redact, redact_text

LONG = 20 if os.environ.get("SOAK") else 1
CORE = "hunter2Qx9"
KEYS = (
    "pin_number ssn_number password_min error_token usage_api_key type_secret rate_token tokens"
    " passwords dsn csrf creditCard PASSWORT loesenord lösenord APIkey"
)
TEXTS = [
    f'Authorization: Digest username="x", response="{CORE}"',
    f'got Authorization: Digest username="x", response="{CORE}" from it',
    f'{{\\"password\\": \\"{CORE}\\"}}',
    f"run --password {CORE} now",
    f'Content-Disposition: form-data; name="password"\r\n\r\n{CORE}\r\n--b--',
    f"send: 'AUTH PLAIN AGFkYQ{CORE}=='",
    f'ConvertTo-SecureString "{CORE}" -AsPlainText',
    f"ada:$2b$12${CORE}R9h/cIPz0gi.URNNX3kh2OPST9",
    f"curl -u user:{CORE} https://x.org",
    f"https://x.org/y?sig={CORE}%3D",
    f"q=password%3D{CORE}",
    f"https://hooks.slack.com/services/T00000000/B00000000/{CORE}",
    f"404 for https://api.telegram.org/bot123456789:{'A' * 25}{CORE}/getMe",
    f"https://outlook.office.com/webhook/{'a1b2' * 9}/IncomingWebhook/{CORE}",
    f"sshpass -p '{CORE}' ssh host",
    f"SET PASSWORD FOR 'bob'@'%' = '{CORE}'",
    "GOCSPX" + f"-{CORE}abcdefghij",
    f"RATE_API_KEY={CORE}",
    f"Command '['curl', '--token', '{CORE}']' failed",
    f"[('password', '{CORE}')]",
    f'{{"name": "password", "value": "{CORE}"}}',
    f'"password": "{"h" * 3000}{CORE}"',
    f"x Cookie: a={CORE}; b={CORE} more",
    f"{{b'authorization': b'Basic {CORE}'}}",
    f"Remember that my password is {CORE}",
    f"The wifi password is {CORE}!",
    f'{{"text": "my router password is {CORE}"}}',
    f"Mitt lösenord är {CORE}.",
    f'settings["password"] = "{CORE}"',
    f'password: str = "{CORE}"',
    f"<wsse:Password Type='x'>{CORE}</wsse:Password>",
    f"<property name='db.password' value='{CORE}'/>",
    f"<name>fs.secret.key</name>\n<value>{CORE}</value>",
    f"CREATE USER bob IDENTIFIED BY '{CORE}'",
    f"ALTER ROLE bob WITH PASSWORD '{CORE}'",
    f"- name: DB_PASSWORD\n  value: {CORE}",
    f"- value: {CORE}\n  name: DB_PASSWORD",
    f"password: |\n  {CORE}",
    f"sid={CORE}",
    f"PHPSESSID={CORE}; path=/",
    f"Command 'mysql -u root -p{CORE} shop' failed",
    f"error:\\npassword={CORE}\\nnext",
    f"API key: {CORE}",
    f"Invalid api_key '{CORE}a1B2c3'",
    f"PASSWORD=a;b&{CORE}",
    f"password: corn b {CORE}",
    f"&lt;password&gt;{CORE}&lt;/password&gt;",
    f'user, password = "bob", "{CORE}"',
    f"INSERT INTO users (name, password) VALUES ('bob', 'x'), ('ada', '{CORE}')",
    f"user;password\nbob;open.sesame\nada;{CORE}",
    f" name | password\n------+----------\n bob  | {CORE}",
    f"setattr(config, 'password', '{CORE}')",
    f'add_argument("--password", default="{CORE}")',
    f'password: SecretStr = Field(default="{CORE}")',
    f"password\n  too short [type=too_short, input_value='{CORE}', input_type=str]",
    f'client.login("bob", "{CORE}")',
    f"db.example:5432:app:bob:{CORE}",
    f"user_pref('network.proxy.password', '{CORE}');",
    f'System.setProperty("javax.net.ssl.trustStorePassword", "{CORE}")',
    f'keyring.set_password("mail", "bob", "{CORE}")',
    f'ldap.simple_bind_s("cn=admin", "{CORE}")',
    f'User.objects.create_user("bob", "bob@x.org", "{CORE}")',
    f'let token: &str = "{CORE}";',
    f"echo {CORE} | docker login --password-stdin -u bob",
    f"AUTH default {CORE}",
    f"heslo={CORE}",
    f"adgangskode: {CORE}",
    "CFPAT" + f"-{CORE * 5}",
    "eyJr" + f"Ijoi{CORE * 8}",
    f"t1.9eu{CORE * 4}.{(CORE * 9)[:86]}",
    base64.b64encode(f"user=bob password={CORE}".encode()).decode(),
]
STAYS = [
    "session_id=abc123",
    "prompt_tokens: 12",
    "max_tokens=100, total_tokens: 5",
    "author: Jane",
    'key: "value"',
    "Invalid password: must be longer",
    "sk-learn-something-long-package-name",
    "commit 56bf84f0c9e1a2b3c4d5e6f708192a3b4c5d6e7f",
    "123e4567-e89b-12d3-a456-426614174000",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA",
    '"tokens": [1, 2, 3]',
    "the --password option is required",
    "my password is wrong, and the token is passed on",
    "The key is an API key of 32 characters; the token is 4096 bytes",
    "GPIO pin 1234",
    "docker run -u 1000:1000 x",
    "see docs/howto/csrf.txt:12, and auth/tokens.py:31: in login",
    "stop_tokens: ['</s>'], token_ids=[1, 2], token_url=https://x.org/token",
    "api_key_env=OPENAI_API_KEY, cookie_name=sessionid, secret_name: db",
    "def login(user: str, password: str, token: Optional[str] = None) -> None:",
    "if identity_token == request.token or token != expected_token:",
    "password=${DB_PASSWORD} and api_key=YOUR_API_KEY and WHERE token = :token",
    "api_key=os.getenv('API_KEY'), password=args.password, db_password=db_password",
    "password: This field is required.",
    "Unexpected token '}' and WWW-Authenticate: Basic realm='x'",
    "http://auth:8080/health and http://localhost:4873/@scope/pkg",
    "Authorization: Bearer <token>",
    "| name | type |\n|---|---|\n| password | string |\n| email | string |",
    "fields = ('user', 'password', 'email'); user, password = form.user, form.password",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "getattr(settings, 'auth.password', 'oauth.token')",
    "echo hello | tee log; docker login --password-stdin",
    "echo $TOKEN | docker login --password-stdin",
]


class Field(Enum):
    LOGIN = "password"
    PASSWORD = 1


@pytest.mark.parametrize("key", KEYS.split())
def test_no_harmless_word_excuses_a_secret(key: str) -> None:
    assert redact({key: CORE}) == {key: "[redacted]"}


@pytest.mark.parametrize("key", [b"password", ("password",), Field.LOGIN, Field.PASSWORD])
def test_keys_that_are_no_text_are_read_too(key: Any) -> None:
    assert CORE not in json.dumps(redact({key: CORE}))


def test_a_secret_form_goes() -> None:
    once = {text: redact_text(text) for text in TEXTS}
    assert [text for text, redacted in once.items() if CORE in redacted] == []
    assert {text: redact_text(redacted) for text, redacted in once.items()} == once


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("my password is swordfish.", "my password is [redacted]."),
        ('the password to our VPN is "swordfish"', 'the password to our VPN is "[redacted]"'),
        ('{\\"a\\": \\"my pin is 4711\\"}', '{\\"a\\": \\"my pin is [redacted]\\"}'),
        ("the pin code 4711 opens it", "the pin code [redacted] opens it"),
    ],
)
def test_a_secret_goes_as_people_say_it(text: str, clean: str) -> None:
    assert redact_text(text) == clean
    assert redact_text(clean) == clean


def test_a_look_alike_stays() -> None:
    assert [redact_text(text) for text in STAYS] == STAYS


@pytest.mark.parametrize(
    "value",
    [
        {"cookies_accepted": "yes"},
        {"tokens": 12},
        {"tokens": {"prompt": 1, "total": 2}},
        {"prompt_tokens_details": {"cached_tokens": 0}},
        {"token_type": "bearer"},
        {"password_length": 8},
        {"name": "bob", "value": "x"},
        ["--max-tokens", "12"],
        {"stop_tokens": ["</s>"]},
        {"token_ids": [1, 2]},
        {"token_url": "https://x.org/token"},
        {"api_key": "${API_KEY}"},
        {"password": ["This field is required."]},
    ],
)
def test_a_measure_stays(value: Any) -> None:
    assert redact(value) == value


@pytest.mark.parametrize(
    "value",
    [
        ["-----BEGIN PRIVATE KEY-----", CORE, "-----END PRIVATE KEY-----", "after"],
        {"kind": "Secret", "data": {"x": CORE}, "after": "after"},
        {"kty": "RSA", "n": "after", "d": CORE},
        [{"option": "password", "default": CORE}, "after"],
        ["sshpass", "-p", CORE, "after"],
        ["mysql", f"-p{CORE}", "after"],
        {"ParameterKey": "DBPassword", "ParameterValue": CORE, "Type": "after"},
        {"OptionName": "MasterPassword", "OptionValue": CORE, "Type": "after"},
        {"label": "API Secret", "value": CORE, "id": "after"},
        {"loc": ["body", "password"], "msg": "after", "input": CORE},
    ],
)
def test_a_secret_that_only_the_structure_tells_goes(value: Any) -> None:
    told = json.dumps(redact(value))
    assert CORE not in told
    assert "after" in told


@pytest.mark.parametrize("raised", [SystemExit, GeneratorExit])
def test_foreign_code_cannot_end_the_program(raised: type[BaseException]) -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise raised

    assert redact([Hostile()]) == [f"<Hostile: repr raised {raised.__name__}>"]


def test_an_interrupt_comes_through() -> None:
    class Interrupted:
        def __repr__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        redact([Interrupted()])


@pytest.mark.parametrize("letter", ["a", '"', "=", "-eyJ"])
def test_a_long_text_is_read_in_one_pass(letter: str) -> None:
    """A form that went back over all for each of its letters would take minutes."""
    long = letter * (250_000 // len(letter)) + " x=1"
    started = time.process_time()
    assert redact_text(long, 2_000_000).endswith("x=1")
    assert time.process_time() - started < 4


@st.composite
def planted(draw: st.DrawFn) -> Any:
    holders: list[Any] = [
        {"password": CORE},
        {b"api_key": CORE.encode()},
        ["Authorization", CORE],
        (b"cookie", CORE.encode()),
        {"name": "password", "value": CORE},
        ["run", "--token", CORE],
        json.dumps(json.dumps({"password": CORE})),
        *TEXTS,
    ]
    value = draw(st.sampled_from(holders))
    for _ in range(draw(st.integers(0, 5))):
        value = draw(st.sampled_from([[1, value], (value,), {"inner": value}, {b"in": value}]))
    return value


@given(planted())
@settings(max_examples=50 * LONG, deadline=None)
def test_a_planted_secret_goes_in_any_nesting(value: Any) -> None:
    once = redact(value)
    assert CORE not in json.dumps(once)
    assert redact(once) == once


def test_no_issued_token_is_as_short_as_a_word_that_is_not_looked_at() -> None:
    """Of small letters alone, which every alphabet has, and as short as its issuer makes it."""
    issued = rules.TABLE["issued"]
    shortest = {
        prefix + ("abcdefghij" * 8)[:least]
        for alphabet in issued["alphabet"]
        for prefix, least in issued[alphabet].items()
        if re.fullmatch("[a-z_]+", prefix)
    }
    assert len(shortest) > 50
    assert {token for token in shortest if redact_text(token) != rules.MASK} == set()
