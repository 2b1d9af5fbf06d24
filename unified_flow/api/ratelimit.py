"""How often one client may ask: a token bucket for each."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal, Self, get_args

Per = Literal["second", "minute", "hour"]
_SECONDS: dict[Per, float] = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
MAX_CLIENTS = 10_000  # those that were silent longest are forgotten first


@dataclass(frozen=True)
class Rate:
    """`most` requests in one `per`; written `5/second`."""

    most: int
    per: Per

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """None for `off`. Raises ValueError."""
        if text == "off":
            return None
        number, _, per = text.partition("/")
        if not number.isdecimal() or not 0 < int(number) < 10**9 or per not in _SECONDS:
            raise ValueError(f"a rate is like 5/second, 60/minute or off, not {text!r}")
        return cls(int(number), next(each for each in get_args(Per) if each == per))

    @property
    def limit_name(self) -> str:
        """As `details.limit` names it."""
        return f"user_per_{self.per}"

    @property
    def tokens_per_s(self) -> float:
        return self.most / _SECONDS[self.per]


class Buckets:
    """A client may spend `rate.most` at once, and gets them back evenly."""

    def __init__(self, rate: Rate | None, most_clients: int = MAX_CLIENTS) -> None:
        self.rate = rate
        self._most_clients = most_clients
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, at second

    def take(self, client: str, now_s: float) -> float:
        """0.0, or the seconds until this client may ask again."""
        if self.rate is None:
            return 0.0
        most = float(self.rate.most)
        tokens, at = self._left.pop(client, (most, now_s))
        tokens = min(most, tokens + max(0.0, now_s - at) * self.rate.tokens_per_s)
        taken = tokens >= 1.0
        self._left[client] = (tokens - 1.0 if taken else tokens, now_s)
        if len(self._left) > self._most_clients:
            self._left.popitem(last=False)
        return 0.0 if taken else (1.0 - tokens) / self.rate.tokens_per_s
