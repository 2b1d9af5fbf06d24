"""The flow: one question, eight phases, one loop that follows what routing says comes next."""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Literal, Self

from interventions.redaction import redact_text
from unified_flow.boundary import run_phase
from unified_flow.clock import elapsed_ms
from unified_flow.course import Course
from unified_flow.errors import (
    ConfigError,
    InputError,
    PhaseError,
    QueueFullError,
    RetrievalError,
    SaveError,
    wire_name,
)
from unified_flow.events import (
    HistoryRead,
    TurnCompleted,
    TurnInterrupted,
    TurnResumed,
    TurnStarted,
    now,
)
from unified_flow.ledger import Ledger, Observer
from unified_flow.messages import safe_message
from unified_flow.question import checked_id, checked_question
from unified_flow.report import tell_outside_a_phase
from unified_flow.results import PriorTurn
from unified_flow.resuming import changes
from unified_flow.routing import End, next_step
from unified_flow.runner import this_process
from unified_flow.services import Services
from unified_flow.shown import shown
from unified_flow.tools.threads import FewThreads
from unified_flow.turn import Turn
from unified_flow.unkept import Unkept

Ended = Literal["answered", "clarify", "silenced"]

logger = logging.getLogger("unified_flow")
logger.addHandler(logging.NullHandler())


class UnifiedFlow:
    """Answers questions, turn by turn. One instance serves many turns at once, on one loop."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._refreshing = FewThreads(1, "refresh")
        self._unkept = Unkept(services.folders, services.queue)

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
    ) -> Turn:
        """The turn, answered or with a question back (`status`).

        Raises InputError for what cannot be asked, ConfigError or QueueFullError if no turn can
        be begun, and the phase's PhaseError once a failure is recorded and the turn has halted.
        A turn that a guardrail or the policy `silent` has silenced is returned, without a response
        (`should_respond`, `error_message`).
        `observer` sees every journal event as it happens. Without `persist` nothing is kept but
        the line of the query log: no message, and the turn itself only for as long as it takes,
        or, if it fails, until its intervention is closed. `history` is what was said before, oldest
        first, where the caller knows better than the session store.
        """
        course = Course.begin(self.services.policy.bounds)
        question = checked_question(message)
        checked_id(session_id, "session_id")
        checked_id(user_id, "user_id")
        request_id = checked_id(request_id or new_request_id(), "request_id")
        if channel is not None:
            checked_id(channel, "channel")
        await self._refresh_documents(course)
        ledger = self._begin(
            observer,
            session_id=session_id,
            request_id=request_id,
            user_id=user_id,
            channel=channel,
            question=question,
            persist=persist,
        )
        with self._kept_if_needed(ledger):
            if history is not None:
                ledger.record(HistoryRead(phase="query_analyzer", turns=list(history)))
            try:
                return await self._run(ledger, course)
            except PhaseError as exc:
                if exc.answer != "silence":
                    raise
                return ledger.turn

    async def resume(
        self,
        turn_id: int,
        decide: Callable[[Turn], TurnResumed],
        *,
        observer: Observer | None = None,
    ) -> Turn:
        """Let a turn on disk go on as `decide` says; everything else is as in `process`.

        `resuming.run.resume_turn` decides as a person expects and is what most callers want.
        Raises what `decide` raises, BlockingIOError if somebody runs the turn, FileNotFoundError
        if there is none, and the phase's PhaseError once a failure is recorded.
        """
        folder = self.services.folders.path(turn_id)
        course = Course.begin(self.services.policy.bounds)
        ledger = Ledger(folder, observer, first=decide)
        with self._kept_if_needed(ledger):
            return await self._run(ledger, course)

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
    def _kept_if_needed(self, ledger: Ledger) -> Iterator[None]:
        """The turn's folder goes with the turn, unless it is to be kept or waits for a person."""
        try:
            with ledger:
                yield
        finally:
            if not ledger.turn.persist:
                if ledger.turn.status == "failed":
                    self._unkept.failed(ledger.turn.turn_id)
                else:
                    shutil.rmtree(ledger.folder, ignore_errors=True)
                self._unkept.look_now_and_then()

    def _begin(self, observer: Observer | None, **asked: Any) -> Ledger:
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
                environment=changes.at_start(self.services),
                **asked,
            )
            try:
                return Ledger(folder, observer, first=started)
            except OSError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        except OSError as exc:
            raise ConfigError(
                f"no turn can be begun in {folders.root}: {exc.strerror}",
                hint="make room there and make it writable, or name another home with --home",
            ) from exc

    async def _run(self, ledger: Ledger, course: Course) -> Turn:
        started = perf_counter()
        error: BaseException | None = None
        try:
            status = await self._walk(ledger, course)
            saved = status == "answered" and ledger.turn.persist
            self._complete(ledger, status, saved=saved, started=started)
        except SaveError as exc:
            # The answer stands: a failed save must not cost the user what the turn found.
            error = exc
            self._complete(ledger, "answered", saved=False, started=started)
        except (asyncio.CancelledError, KeyboardInterrupt) as exc:
            error = exc
            self._close(ledger, TurnInterrupted(phase=ledger.turn.running, reason=_name(exc)))
            raise
        except BaseException as exc:
            error = exc
            if isinstance(exc, PhaseError) and exc.answer == "silence":
                await self.services.guardrails.failed(ledger.turn)
            raise
        finally:
            course.end()
            self._log_request(ledger.turn, error)
        return ledger.turn

    async def _walk(self, ledger: Ledger, course: Course) -> Ended:
        """Through the phases, between the guardrails; how it ended."""
        guardrails = self.services.guardrails
        if not await guardrails.admits(ledger):
            return "silenced"
        course.search_first(self.services, ledger.turn)
        while True:
            step = next_step(ledger.turn, self.services.settings.limits)
            if step == End("answered"):
                return "answered"
            turn = ledger.turn
            if isinstance(step, End):
                released = await guardrails.releases(ledger, turn.clarification_question or "")
                return "clarify" if released else "silenced"
            # Nothing is kept before this phase, so that nothing needs to be taken back after it.
            if step.phase == "save" and not await guardrails.releases(ledger, turn.response or ""):
                return "silenced"
            await run_phase(step, ledger, self.services, course)

    def _complete(self, ledger: Ledger, status: Ended, *, saved: bool, started: float) -> None:
        took = elapsed_ms(started)
        self._close(ledger, TurnCompleted(status=status, saved=saved, duration_ms=took))

    def _close(self, ledger: Ledger, event: TurnCompleted | TurnInterrupted) -> None:
        """The turn's last line. It adds nothing to what the phases have written, so that a disk
        which fills up just now must cost neither the answer nor the cancellation."""
        try:
            ledger.record(event)
            ledger.flush()
        except OSError as exc:
            logger.critical("turn %s lacks its last line: %s", ledger.turn.turn_id, exc)

    def _log_request(self, turn: Turn, error: BaseException | None) -> None:
        phase_error = error if isinstance(error, PhaseError) else None
        try:
            self.services.query_log.write(
                turn,
                error_type=wire_name(error) if error else None,
                code=phase_error.code if phase_error else None,
            )
        except OSError as exc:
            # A full disk must not turn an answer into a failure, nor mask the failure at hand.
            logger.critical("%s cannot be written: %s", self.services.query_log.path, exc)

    async def process_request(
        self, session_id: str, message: str, **options: Any
    ) -> dict[str, Any]:
        """The top-level handler: the same as `process`, but as a dict that never raises.

        {"response", "error", "error_type", "phase", "intervention_id", "turn_id", "request_id"},
        and "partial" where a failed turn had got somewhere (error-handling-architecture.md,
        "Top-Level Error Handler"). Cancellation goes through.
        """
        request_id = options.pop("request_id", None) or new_request_id()
        try:
            turn = await self.process(session_id, message, request_id=request_id, **options)
        except PhaseError as exc:
            return _answer(exc.user_safe_message, request_id, exc, turn_id=exc.turn_id)
        except InputError as exc:
            return _answer(redact_text(str(exc)), request_id, exc)
        except Exception as exc:  # noqa: BLE001 - the document's last line: nothing else may pass
            return await self._unexpected(exc, session_id, request_id)
        answer = _answer(shown(turn.response or ""), request_id, turn_id=turn.turn_id)
        if not turn.should_respond:
            return answer | {
                "should_respond": False,
                "error_message": turn.error_message,
                "guardrail_pre_result": turn.guardrail_pre_result,
                "retry_count": turn.retry_count,
            }
        if turn.failure is not None:
            answer |= {
                "saved": False,
                "phase": turn.failure.phase,
                "intervention_id": turn.failure.intervention_id,
            }
        return answer

    async def _unexpected(self, exc: Exception, session_id: str, request_id: str) -> dict[str, Any]:
        """A failure of the flow itself, outside any phase."""
        language = self.services.settings.language
        if isinstance(exc, QueueFullError):
            # It says that a failure would find no room; putting it there would prove it right.
            return _answer(
                safe_message("UNEXPECTED", told=False, language=language), request_id, exc
            )
        admission = await asyncio.to_thread(
            tell_outside_a_phase, exc, session_id, request_id, self.services
        )
        told = admission.intervention_id is not None
        text = safe_message("UNEXPECTED", told=told, language=language)
        return _answer(text, request_id, exc) | {
            "phase": "unknown",
            "intervention_id": admission.intervention_id,
        }

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


def _name(exc: BaseException) -> str:
    return type(exc).__name__


def new_request_id() -> str:
    """`2026-01-04-1f9c0a3e5b7d`: the date, so that a log is quickly found, and chance."""
    return f"{now():%Y-%m-%d}-{secrets.token_hex(6)}"


def _answer(
    response: str, request_id: str, error: Exception | None = None, *, turn_id: int | None = None
) -> dict[str, Any]:
    failed = error if isinstance(error, PhaseError) else None
    answer: dict[str, Any] = {
        "response": response,
        "error": error is not None,
        "error_type": wire_name(error) if error else None,
        "phase": failed.phase if failed else None,
        "intervention_id": failed.intervention_id if failed else None,
        "turn_id": turn_id,
        "request_id": request_id,
    }
    if failed and failed.partial:
        answer["partial"] = failed.partial
    return answer
