"""What a user names as documents: files and folders, and pages on the web."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeGuard
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from unified_flow.errors import InputError
from unified_flow.lib.printable import printable

Root = Path | str
"""A path, or as text the address of a web page."""

DEFAULT_COLLECTION = "documents"

_ADDRESS = re.compile(r"https?://", re.IGNORECASE)


def is_address(root: object) -> TypeGuard[str]:
    return isinstance(root, str) and _ADDRESS.match(root) is not None


def _as_root(value: Any) -> Any:
    return Path(value) if isinstance(value, str) and not is_address(value) else value


DocumentRoot = Annotated[Path | str, BeforeValidator(_as_root)]
"""A `Root` among settings."""


def absolute(root: Path | str) -> Root:
    """The root as it is stored, for a process that may run in another folder later."""
    return root if is_address(root) else Path(root).expanduser().absolute()


def folders_of(roots: Iterable[Path | str]) -> list[Path]:
    """The roots that are on this machine."""
    return [Path(root) for root in roots if not is_address(root)]


def resolved(roots: Iterable[Path | str]) -> list[Root]:
    """The roots, paths absolute, without repeats; InputError for one that is not there."""
    return list(
        dict.fromkeys(_checked(root) if is_address(root) else _resolved(root) for root in roots)
    )


def _checked(address: str) -> str:
    """The address of the page alone. A password in it is refused: it would be kept, and cited."""
    parts = urlsplit(address)
    if "@" in parts.netloc:
        raise InputError(
            f"the address of {parts.hostname} holds a name or a password",
            field="docs",
            hint="Save the page as a file, and index that.",
        )
    return parts._replace(fragment="").geturl()


def _resolved(path: Path | str) -> Path:
    shown = printable(str(path)[:200]).replace("\0", "\\0")
    try:
        root = Path(path).expanduser().resolve(strict=True)
        root.stat()
    except FileNotFoundError as exc:
        raise InputError(
            f"There is no file or folder {shown}",
            field="docs",
            hint=f"Check the spelling; paths are relative to {printable(str(Path.cwd()))}.",
        ) from exc
    except (OSError, RuntimeError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        raise InputError(
            f"{shown} cannot be read: {reason}",
            field="docs",
            hint="Name a file or folder that you may read.",
        ) from exc
    return root


def without_links(root: Path | str) -> Root:
    """The root with its links followed, whether or not it is there."""
    return root if is_address(root) else Path(os.path.realpath(Path(root).expanduser()))


def root_from(stored: bytes) -> Root:
    """The root that the index keeps as the bytes of its path or address."""
    text = os.fsdecode(stored)
    return text if is_address(text) else Path(text)


def own_folders(path: Path) -> set[Path]:
    """The index's folder, and the run-time state around it, are no documents."""
    folder = path.parent.resolve()
    state = folder.parent
    return {folder, state, state.parent / "logs"} if state.name == "shared_state" else {folder}
