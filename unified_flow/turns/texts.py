"""Small texts that several processes read and change: private files, or rows of a database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from filelock import FileLock, Timeout

from interventions.home import PRIVATE_FILE_MODE, make_private_folder, replace_private
from unified_flow.errors import RetrievalError

T = TypeVar("T")
Change = Callable[[str], tuple[str, T]]

LOCK_TIMEOUT_S = 10.0


class TextStore(Protocol):
    """Texts by their names; one that was never written is empty. Each method but `may_have` raises
    RetrievalError if they cannot be read or written."""

    def place(self, name: str) -> str:
        """Where the text is, for a message to people."""
        ...

    def names(self) -> list[str]:
        """The names of all texts; in a folder, of its `.jsonl`."""
        ...

    def may_have(self, name: str) -> bool:
        """Whether it may have been written; nobody waits for the answer."""
        ...

    def read(self, name: str) -> str: ...

    def change(self, name: str, change: Change[T]) -> T:
        """`change` is given the text, which nobody else changes meanwhile, and gives what is to
        take its place, and what is returned."""
        ...


class TextFolder(TextStore):
    """Files of a folder. Writers replace the whole file under its lock, so that a kill leaves the
    old file or the new one, and readers need no lock."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def place(self, name: str) -> str:
        return str(self.root / name)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.root.glob("*.jsonl"))

    def may_have(self, name: str) -> bool:
        try:
            (self.root / name).stat()
        except FileNotFoundError:
            return False
        except OSError:
            pass  # reading it says what is wrong
        return True

    def read(self, name: str) -> str:
        try:
            # Other ends of lines than \n belong to the text.
            return (self.root / name).read_bytes().decode()
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as exc:
            raise RetrievalError(
                f"{self.root / name} cannot be read: {str(exc).splitlines()[0]}",
                hint="mend or remove that file",
            ) from exc

    def change(self, name: str, change: Change[T]) -> T:
        path = self.root / name
        lock = FileLock(path.with_suffix(".lock"), mode=PRIVATE_FILE_MODE)
        try:
            make_private_folder(self.root)
            with lock.acquire(timeout=LOCK_TIMEOUT_S, poll_interval=0.01):
                before = self.read(name)
                after, changed = change(before)
                if after != before:
                    replace_private(path, after)
                return changed
        except Timeout as exc:
            raise RetrievalError(
                f"{lock.lock_file} was held by somebody else for over {LOCK_TIMEOUT_S:g} s"
            ) from exc
        except OSError as exc:
            raise RetrievalError(f"{path} cannot be written: {exc.strerror or exc}") from exc
