"""Files that hold keys or credentials, by their names or by what is in them: neither the index nor
a tool reads them."""

from __future__ import annotations

import re

_FOLDERS = frozenset({".aws", ".git", ".gnupg", ".ssh"})
_NAMES = re.compile(
    r"""
    \.env\..* | .*\.env | .*\.(?:pem|key|tfstate|tfstate\.backup)
    | \.(?:netrc|pgpass|pypirc|npmrc|htpasswd|git-credentials)
    | id_[^.]*(?:\.(?:pub|bak|old))?    # of ssh
    | secrets\.(?!(?:md|rst|adoc|html?)\Z).*  # pages about secrets are documents
    """,
    re.IGNORECASE | re.VERBOSE,
)
_HEAD = 64 * 1024  # bytes: a file of keys is small
_KEYS = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----))*-----END [A-Z ]*KEY"
)
_CREDENTIALS = re.compile(
    rb"""(?:^|[{,])[ \t"']*(?:export[ ])?(?:aws_secret_access_key|aws_session_token"""
    rb"""|azure_client_secret|(?:azure_storage_)?account_?key|client-key-data|refresh_token)"""
    rb"""["']?[ ]*[:=][ ]*["']?[\w/+=.~-]{16,}""",
    re.IGNORECASE | re.MULTILINE,
)
_SETTING = re.compile(rb"""[\[\]{}#;].*|(?:-\s+)?[\w."'-]+(?:\s+\w+)?\s*[:=].*|""")


def is_secret(path: str) -> bool:
    """Whether a file or folder of this path mostly holds credentials."""
    *above, name = path.rstrip("/").split("/")
    return (
        not _FOLDERS.isdisjoint((*above, name))
        or (name == "config" and above[-1:] == [".kube"])
        or _NAMES.fullmatch(name) is not None
    )


def secret_in(data: bytes) -> str | None:
    """What a file that holds little else than keys or credentials holds; None for a page that only
    shows some."""
    head = data[:_HEAD]
    if 2 * sum(len(found[0]) for found in _KEYS.finditer(head)) > len(head):
        return "a private key"
    if _CREDENTIALS.search(head):
        lines = [line.strip() for line in head.split(b"\n")]
        if 10 * sum(map(bool, map(_SETTING.fullmatch, lines))) >= 9 * len(lines):
            return "cloud credentials"
    return None
