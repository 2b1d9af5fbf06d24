"""What is remembered of a user: `memory/<user>.jsonl`, a line {"id", "text"} each."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from unified_flow.errors import RetrievalError
from unified_flow.results import Memory
from unified_flow.text import terms


class MemoryStore:
    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, user_id: str) -> Path:
        """The user's file. Any id makes a safe name: a digest stands for what is not plain."""
        plain = user_id.isascii() and user_id.replace("-", "").replace("_", "").isalnum()
        name = user_id if plain and len(user_id) <= 64 else sha256(user_id.encode()).hexdigest()
        return self.root / f"{name}.jsonl"

    def search(self, user_id: str, text: str, *, limit: int) -> list[Memory]:
        """Memories that share terms with `text`, best first; score is the share of its terms.

        Raises RetrievalError if the file cannot be read.
        """
        wanted = set(terms(text))
        scored = []
        for memory in self._all(user_id) if wanted else []:
            score = len(wanted & set(terms(memory.text))) / len(wanted)
            if score > 0:
                scored.append(memory.model_copy(update={"score": score}))
        return sorted(scored, key=lambda memory: -memory.score)[:limit]

    def _all(self, user_id: str) -> list[Memory]:
        path = self.path(user_id)
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            return [Memory.model_validate(json.loads(line)) for line in lines if line.strip()]
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as exc:
            raise RetrievalError(
                f"the memories in {path} cannot be read: {str(exc).splitlines()[0]}",
                hint="mend or remove that file",
            ) from exc
