"""Whether a question could be answered now: which part fails, never why or where, because anybody
may ask. `unified-flow doctor` says the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from tempfile import TemporaryFile
from time import monotonic
from typing import Literal, TypeVar

from interventions.errors import QueueError
from interventions.home import make_private_folder, state_folder
from unified_flow.api.running_turns import Progress
from unified_flow.api.upkeep import Upkeep
from unified_flow.config.settings import EMBEDDED
from unified_flow.engine.services import Services
from unified_flow.errors import UnifiedFlowError
from unified_flow.lib.threads import FewThreads
from unified_flow.phases import NAMES

T = TypeVar("T")
Finding = Literal["ok", "failed"]
PROBE_TIMEOUT_S = 2.0
GOOD_FOR_S = 1.0
MODERATION_GOOD_FOR_S = 30.0
ROOM_BYTES = 128 * 1024  # about what a turn and its failure write


@dataclass
class Readiness:
    """Findings hold for a moment: anybody may ask, and each check costs the model's server."""

    upkeep: Upkeep
    progress: Progress
    _findings: dict[str, Finding] = field(default_factory=dict)
    _until: float = 0.0
    _moderates: bool = True
    _moderated_until: float = 0.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _threads: FewThreads = field(default_factory=lambda: FewThreads(3, "ready"))

    async def checks(self, services: Services) -> dict[str, Finding]:
        async with self._lock:
            if monotonic() >= self._until:
                self._findings = await self._checks(services)
                self._until = monotonic() + GOOD_FOR_S
            return self._findings

    async def _checks(self, services: Services) -> dict[str, Finding]:
        """Every check, all at once: one that waits for its time-out holds up no other."""
        index, queue, models, rules, moderates = await asyncio.gather(
            _in_time(self._threads, partial(_index, services)),
            _in_time(self._threads, partial(_queue, services)),
            _models(services),
            _in_time(self._threads, partial(_rules, services)),
            self._is_moderated(services),
        )
        ready = {
            "index": index,
            "model": models and not self.progress.hangs(),
            "queue": queue,
            "logs": not self.upkeep.waiting,
        }
        if rules is not None:
            ready["guardrails"] = rules and moderates
        return {name: "ok" if ok else "failed" for name, ok in ready.items()}

    async def _is_moderated(self, services: Services) -> bool:
        """Whether moderation answers, where it has to: it is asked seldom, because each check may
        cost."""
        guardrails = services.guardrails
        own = guardrails.settings
        must_answer = own.moderation_failure == "fail_closed" and not own.shadow
        if (
            guardrails.moderator is not None
            and must_answer
            and monotonic() >= self._moderated_until
        ):
            self._moderates = await guardrails.try_moderation() is None
            self._moderated_until = monotonic() + MODERATION_GOOD_FOR_S
        return self._moderates


async def _in_time(threads: FewThreads, check: Callable[[], T]) -> T | Literal[False]:
    """A store that does not answer in time, or cannot be used, fails."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            return await threads.run(check)
    except (TimeoutError, UnifiedFlowError, QueueError, OSError):
        return False


def _index(services: Services) -> bool:
    """Whether the index answers; without documents there is none that could fail."""
    if services.documents is None:
        return True
    services.documents.ensure_fresh()
    return services.documents.index.counts()[1] > 0


def _rules(services: Services) -> bool | None:
    """Whether they can be read; None where nothing is checked."""
    services.guardrails.check_store()
    return True if services.guardrails.are_used else None


def _queue(services: Services) -> bool:
    """Whether a failure would find room, on the disk too."""
    folder = state_folder(services.home)
    make_private_folder(folder)
    with TemporaryFile(dir=folder) as file:
        file.write(bytes(ROOM_BYTES))
    # Asked in any case: a queue that was lost is not ready either.
    return not (services.queue.is_full() and services.refuse_when_full)


async def _models(services: Services) -> bool:
    """An embedded model is not probed: the first question starts it."""
    from unified_flow.models.openai.model import OpenAIModel
    from unified_flow.models.openai.probe import probe, unwrapped

    try:
        names = {services.models.name_of(services.recipe(phase).head) for phase in NAMES}
        named = sorted(name for name in names if name not in (None, EMBEDDED))
        models = [unwrapped(services.models.named(name)) for name in named]
    except UnifiedFlowError:
        return False
    probes = [probe(m, PROBE_TIMEOUT_S) for m in models if isinstance(m, OpenAIModel)]
    return all(reply.ok for reply in await asyncio.gather(*probes))
