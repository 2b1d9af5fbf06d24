"""A circuit that threads share: whoever has waited in vain tells the others why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic

from unified_flow.errors import RetrievalError
from unified_flow.models.circuit import Circuit, Rules, asked, failed, given_up, succeeded


class Breaker:
    """`told`: what to say of an exception. Of those that are `away` the circuit is counted."""

    def __init__(
        self,
        rules: Rules,
        away: tuple[type[Exception], ...],
        told: Callable[[Exception], RetrievalError],
    ) -> None:
        self._rules = rules
        self._away = away
        self._told = told
        self._lock = Lock()
        self._circuit = Circuit()
        self._why: RetrievalError | None = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Raises RetrievalError at once while the circuit is open."""
        with self._lock:
            self._circuit, left_s = asked(self._circuit, monotonic(), self._rules)
        if left_s is not None and self._why is not None:
            raise RetrievalError(str(self._why), hint=self._why.hint)
        try:
            yield
        except self._away as exc:
            with self._lock:
                self._why = self._told(exc)
                self._circuit = failed(self._circuit, monotonic(), self._rules)
            raise
        except BaseException:
            with self._lock:
                self._circuit = given_up(self._circuit)
            raise
        with self._lock:
            self._circuit = succeeded(self._circuit)
