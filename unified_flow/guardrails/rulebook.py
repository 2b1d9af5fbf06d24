"""The rules in force, ready to match: read again and built again only when they changed."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from unified_flow.guardrails.matching import Matcher
from unified_flow.guardrails.rules import UserRules

if TYPE_CHECKING:
    from unified_flow.guardrails.store import GuardrailStore, Version

MOST_USERS = 256


@dataclass(frozen=True)
class Ready:
    rules: UserRules
    matcher: Matcher
    version: Version


class Rulebook:
    """Holds the matchers of the users who were seen last."""

    def __init__(self, store: GuardrailStore) -> None:
        self._store = store
        self._ready: OrderedDict[str, Ready] = OrderedDict()
        self._lock = Lock()

    def of(self, user_id: str) -> Ready | None:
        """None for a user without rules. Raises RetrievalError."""
        version = self._store.version(user_id)
        if version is None:
            return None
        with self._lock:
            known = self._ready.get(user_id)
            if known is not None and known.version == version:
                self._ready.move_to_end(user_id)
                return known
        rules = self._store.rules(user_id)
        if rules is None:
            return None
        # Read before the rules: rules that are newer than this are read once more, never less.
        ready = Ready(rules, Matcher(rules.rules()), version)
        with self._lock:
            self._ready[user_id] = ready
            while len(self._ready) > MOST_USERS:
                self._ready.popitem(last=False)
        return ready
