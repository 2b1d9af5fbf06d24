"""Files that hold keys or credentials, by their names or by what is in them: neither the index nor
a tool reads them."""

from __future__ import annotations

import re

_FOLDERS = frozenset({".aws", ".git", ".gnupg", ".ssh"})
_NAMES = re.compile(
    r"""
    \.env\..* | .*\.env | .*\.(?:pem|key|tfstate|tfstate\.backup)
    | \.(?:netrc|pgpass|pypirc|npmrc|htpasswd|git-credentials)
    | secrets\.(?!(?:md|rst|adoc|html?)\Z).*  # pages about secrets are documents
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SSH_KEY = re.compile(r"id_(?:[dr]sa|(?:ecdsa|ed25519)(?:_sk)?)(?:\.(?:pub|bak|old))?")
# Formats of pages, which may show a key.
_PROSE = frozenset({".md", ".markdown", ".rst", ".adoc", ".asciidoc", ".html", ".htm", ".ipynb"})
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


def is_secret(path: str, *, is_folder: bool = False) -> bool:
    """Whether a file or folder mostly holds credentials; `path` begins with the root's own name."""
    *above, name = path.split("/")
    return (
        not _FOLDERS.isdisjoint((*above, name))
        or (name == "config" and above[-1:] == [".kube"])
        or _NAMES.fullmatch(name) is not None
        or (not is_folder and _SSH_KEY.fullmatch(name) is not None)
    )


def secret_in(data: bytes, extension: str) -> str | None:
    """Which keys or credentials the file holds; None for a page that only shows some."""
    head = data[:_HEAD]
    keys = sum(len(found[0]) for found in _KEYS.finditer(head))
    if 2 * keys > len(head) or (keys and extension not in _PROSE):
        return "a private key"
    if _CREDENTIALS.search(head):
        lines = [line.strip() for line in head.split(b"\n")]
        if 10 * sum(map(bool, map(_SETTING.fullmatch, lines))) >= 9 * len(lines):
            return "cloud credentials"
    return None
