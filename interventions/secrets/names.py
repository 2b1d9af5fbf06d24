"""Which names say by themselves that their value is a secret."""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from functools import lru_cache
from itertools import pairwise

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NUMBER = re.compile(r"[+-]?[0-9][0-9_,.]{0,20}[ ]?(?:%|[A-Za-z]{1,3})?\Z")
_WORD = re.compile(r"[A-Za-z]{1,20}\Z")
_LONGEST = 200

MASK = "[redacted]"


class NameKind(Enum):
    """What a name says of its value."""

    PLAIN = "nothing"
    MEASURE = "a number, or one word in its place"
    NUMBER = "a number, else a secret"
    SECRET = "a secret"


# Words that a measure or a description beside them excuses: `max_tokens`, `auth_type`.
_WEAK_WORDS = frozenset({"auth", "cookie", "cookies", "token", "tokens"})
_SECRET_WORDS = frozenset(
    """
    accesskey accesskeys accesstokens accountkey apikey apikeys apitokens authorization authtokens
    bearer cardnumber connectionstring contrasena credential credentials creditcard creditcards
    creds csrf cvc cvv dsn encryptionkey jwt jwts kennwort loesenord losenord mfa otp otps
    passcode passcodes passphrase passphrases passwd passwds password passwords passwort
    passworter pin pins privatekey privatekeys pwd pwds refreshtokens secret secretkey secretkeys
    secrets senha sessionkey sharedkey sig signature signatures signingkey ssn totp wachtwoord
    xsrf
    """.split()  # noqa: SIM905
)
_SECRET_PAIRS = frozenset(
    """
    access-key access-keys access-tokens account-key api-key api-keys api-tokens auth-tokens
    bearer-tokens card-number client-key connection-string credit-card credit-cards encryption-key
    encryption-keys id-tokens license-key master-key mot-passe pass-phrase pass-word pass-words
    private-key private-keys refresh-tokens secret-key secret-keys service-key session-key
    session-tokens shared-key signing-key signing-keys ssh-key ssh-keys storage-key
    subscription-key
    """.split()  # noqa: SIM905
)
# Beside `tokens` these make it a measure, after any other secret word too: `password_length`.
_MEASURES = frozenset(
    """
    budget cached completion cost count counts input len length limit limits max min num output
    per prompt rate ratio reasoning remaining size total ttl usage used window
    """.split()  # noqa: SIM905
)
# As the last word these describe the secret, and do not give it: `password_required`.
_DESCRIBERS = frozenset(
    """
    accepted enabled error errors exists expiration expired expires expiry failed failure invalid
    kind method missing mode policy present rejected required scheme status supported type types
    valid
    """.split()  # noqa: SIM905
)
# What may follow a describer: `token_expires_at`.
_TIMES = frozenset(
    """
    after at before date days hours in minute minutes ms on s second seconds time
    """.split()  # noqa: SIM905
)
_SECRET_ENDINGS = tuple(
    """
    password passwords passwd passphrase passwort losenord secret token apikey apikeys secretkey
    privatekey accesskey credentials
    """.split()  # noqa: SIM905
)


def hides(name: NameKind, text: str) -> bool:
    """Whether a text under such a name is to be hidden."""
    if name is NameKind.PLAIN:
        return False
    if name is NameKind.SECRET:
        return True
    return not (_NUMBER.match(text) or (name is NameKind.MEASURE and _WORD.match(text)))


def name_kind(key: str) -> NameKind:
    if len(key) > 2 * _LONGEST:
        key = f"{key[:_LONGEST]} {key[-_LONGEST:]}"
    return _read(key)


@lru_cache(maxsize=4096)
def _read(key: str) -> NameKind:
    if not key.isascii():
        parts = unicodedata.normalize("NFKD", key)
        key = "".join(part for part in parts if not unicodedata.combining(part))
    words = [word.lower() for word in _WORDS.findall(key) if not word.isdigit()]
    strong = _is_strong(words)
    if not strong and _WEAK_WORDS.isdisjoint(words):
        return NameKind.PLAIN
    last = len(words)
    while last > 1 and words[last - 1] in _TIMES:
        last -= 1
    if words[last - 1] in _DESCRIBERS:
        return NameKind.PLAIN
    if strong:
        return NameKind.NUMBER if words[last - 1] in _MEASURES else NameKind.SECRET
    measured = not _MEASURES.isdisjoint(words)
    if "tokens" in words:
        return NameKind.MEASURE if measured else NameKind.NUMBER
    if measured:
        return NameKind.MEASURE if words[last - 1] in _MEASURES else NameKind.NUMBER
    return NameKind.SECRET


def _is_strong(words: list[str]) -> bool:
    if any(_is_strong_word(word) for word in words):
        return True
    if any("-".join(pair) in _SECRET_PAIRS for pair in pairwise(words)):
        return True
    # `APIkey` has no seam where one is expected.
    joined = "".join(words)
    return joined.endswith(_SECRET_ENDINGS) and words[-1] not in _WEAK_WORDS


def _is_strong_word(word: str) -> bool:
    return word in _SECRET_WORDS or (word.endswith(_SECRET_ENDINGS) and word not in _WEAK_WORDS)
