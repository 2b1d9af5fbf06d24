"""The flow: one question, eight phases, from the outside."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from unified_flow.errors import (
    NoTurnError,
    PhaseError,
    QueueFullError,
    RetrievalError,
)
from unified_flow.handler import handle
from unified_flow.question import (
    checked_channel,
    checked_id,
    checked_question,
    checked_user,
    new_request_id,
)
from unified_flow.resuming import changes
from unified_flow.resuming.unkept import Unkept
from unified_flow.running.course import Course
from unified_flow.running.walk import log_request, run_turn
from unified_flow.services import Services
from unified_flow.sessions.delivered import Deliveries, answered_before
from unified_flow.telemetry.querylog import LogRequest
from unified_flow.tools.threads import FewThreads
from unified_flow.turns.events import HistoryRead, TurnStarted
from unified_flow.turns.ledger import Ledger, Observer
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.runner import this_process
from unified_flow.turns.turn import Turn

logging.getLogger("unified_flow").addHandler(logging.NullHandler())


class UnifiedFlow:
    """Answers questions, turn by turn. One instance serves many turns at once, on one loop."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._refreshing = FewThreads(1, "refresh")
        self._unkept = Unkept(services.folders, services.queue)
        self._deliveries = Deliveries()

    @classmethod
    def from_config(
        cls,
        home: Path | str | None = None,
        *,
        docs: Sequence[Path | str] | None = None,
        model: str | None = None,
        policy: str | None = None,
        **settings: Any,
    ) -> Self:
        """A flow over `home` (see `interventions.home.find_home`); None means: as configured.

        `settings` are those of `unified_flow.toml`. Raises ConfigError or InputError.
        """
        from unified_flow.wiring import wire

        return cls(wire(home, docs=docs, model=model, policy=policy, **settings))

    async def process(
        self,
        session_id: str,
        message: str,
        *,
        user_id: str = "default",
        channel: str | None = None,
        request_id: str | None = None,
        observer: Observer | None = None,
        persist: bool = True,
        history: Sequence[PriorTurn] | None = None,
        log: LogRequest | None = None,
    ) -> Turn:
        """The turn, answered or with a question back (`status`).

        Raises InputError for what cannot be asked, ConfigError or QueueFullError if no turn can
        be begun, and the phase's PhaseError once a failure is recorded and the turn has halted.
        A turn that a guardrail or the policy `silent` has silenced is returned, without a response
        (`should_respond`, `error_message`).
        `observer` sees every journal event as it happens. Without `persist` nothing is kept but
        the line of the query log: no message, and the turn itself only for as long as it takes,
        or, if it fails, until its intervention is closed. `history` is what was said before, oldest
        first, where the caller knows better than the session store. `log` is given the request's
        line in place of the query log, to which the caller then adds it.
        A message of a session that is delivered again, with the `request_id` it had, is answered
        by the turn that has answered it, or that is just about to.
        """
        course = Course.begin(self.services.policy.bounds, log)
        question = checked_question(message)
        checked_id(session_id, "session_id")
        user_id = checked_user(user_id)
        delivered = request_id is not None and persist
        request_id = checked_id(request_id or new_request_id(), "request_id")
        channel = checked_channel(channel)
        asked = {
            "session_id": session_id,
            "request_id": request_id,
            "user_id": user_id,
            "question": question,
        }
        begin = partial(self._process, course, observer, asked, channel, persist, history)
        if not delivered:
            return await begin()
        async with self._deliveries.one_by_one(*asked.values()):
            return self._answered(course, **asked) or await begin()

    async def _process(
        self,
        course: Course,
        observer: Observer | None,
        asked: dict[str, str],
        channel: str | None,
        persist: bool,
        history: Sequence[PriorTurn] | None,
    ) -> Turn:
        await self._refresh_documents(course)
        ledger = self._begin(observer, course, **asked, channel=channel, persist=persist)
        with self._kept_if_needed(ledger, course):
            if history is not None:
                ledger.insist(HistoryRead(phase="query_analyzer", turns=list(history)))
            try:
                return await run_turn(ledger, course, self.services)
            except PhaseError as exc:
                if exc.answer != "silence":
                    raise
                return ledger.turn

    async def resume(self, ledger: Ledger, log: LogRequest | None = None) -> Turn:
        """A turn on disk that was taken up, and whose ledger says that it goes on, to its end.

        `resuming.run.resume_turn` does all of it as a person expects, and is what most callers
        want. Raises the phase's PhaseError once a failure is recorded.
        """
        course = Course.begin(self.services.policy.bounds, log)
        with self._kept_if_needed(ledger, course):
            return await run_turn(ledger, course, self.services)

    def _answered(self, course: Course, **message: str) -> Turn | None:
        """The turn that has answered this very message, for a message that is delivered again."""
        turn = answered_before(self.services.sessions, self.services.folders, **message)
        if turn is not None:
            log_request(turn, None, course, self.services)
        return turn

    async def _refresh_documents(self, course: Course) -> None:
        """Raises InputError where there is nothing to answer from."""
        documents = self.services.documents
        if documents is None or documents.fresh:
            return
        # An index that is broken, or that does not answer in time, is met again in doc.search,
        # where it becomes an intervention.
        deadline = asyncio.timeout_at(course.searched_at)
        try:
            async with deadline:
                await self._refreshing.run(documents.ensure_fresh)
        except RetrievalError:
            return
        except TimeoutError:
            if not deadline.expired():
                raise

    @contextmanager
    def _kept_if_needed(self, ledger: Ledger, course: Course) -> Iterator[None]:
        """The turn's folder goes with the turn, unless it is to be kept or waits for a person."""
        try:
            with ledger:
                try:
                    yield
                finally:  # before the journal is anybody's
                    if ledger.turn.waits and not ledger.turn.persist:
                        self._unkept.failed(ledger.turn.turn_id, course.telling)
        finally:
            if not ledger.turn.persist:
                if not ledger.turn.waits:
                    shutil.rmtree(ledger.folder, ignore_errors=True)
                self._unkept.look_now_and_then()

    def _begin(self, observer: Observer | None, course: Course, **asked: Any) -> Ledger:
        """A turn folder of its own, with the first line in its journal; or nothing at all."""
        if self.services.refuse_when_full and self.services.queue.is_full():
            raise QueueFullError(
                "the intervention queue is full, and refuse_when_full is set",
                hint="resolve or dismiss some first: interventions list",
            )
        folders = self.services.folders
        try:
            turn_id, folder = folders.create()
            started = TurnStarted(
                turn_id=turn_id,
                policy=self.services.policy.name,
                config_digest=self.services.config_digest,
                runner=this_process(),
                asked_with=self.services.asked_with,
                environment=changes.at_start(self.services, partial(course.recipe, self.services)),
                **asked,
            )
            try:
                return Ledger(folder, observer, first=started)
            except OSError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        except OSError as exc:
            raise NoTurnError(
                f"no turn can be begun in {folders.root}: {exc.strerror}",
                hint="make room there and make it writable, or name another home with --home",
            ) from exc

    async def process_request(
        self, session_id: str, message: str, **options: Any
    ) -> dict[str, Any]:
        """The same as `process`, but as a dict that never raises (`handler.handle`)."""
        return await handle(self, session_id, message, **options)

    async def aclose(self) -> None:
        """Close the models' connections and the stores."""
        await self._unkept.aclose()
        await self.services.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
