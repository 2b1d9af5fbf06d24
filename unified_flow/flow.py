"""The flow: one question, eight phases, from the outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from interventions.secrets.redaction import redact_for_asker, redact_text
from unified_flow.engine.dead_turns import take_over
from unified_flow.engine.environment import beginning
from unified_flow.engine.ephemeral_turns import EphemeralTurns
from unified_flow.engine.failure_report import report_unhandled
from unified_flow.engine.loop import run_turn
from unified_flow.engine.outcome import outcome_of, phase_error
from unified_flow.engine.retried_interventions import may_stay_open, resolve_passed
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.query_log import LogRequest, RequestLine
from unified_flow.engine.turn_run import TurnRun
from unified_flow.errors import InputError, NoTurnError, QueueFullError, RetrievalError, wire_name
from unified_flow.errors.safe_messages import MESSAGES, safe_message
from unified_flow.lib.threads import FewThreads
from unified_flow.phases.errors import PhaseError
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.events import HistoryRead, TurnStarted, this_process
from unified_flow.turns.input_checks import (
    ONE_QUESTION,
    checked_channel,
    checked_history,
    checked_id,
    checked_question,
    checked_user,
    new_request_id,
    new_session_id,
)
from unified_flow.turns.ledger import Ledger, Observer
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.store import Delivery
from unified_flow.turns.turn import Turn

if TYPE_CHECKING:
    from unified_flow.wiring import WiringOptions


class ProcessOptions(TypedDict, total=False):
    """Keywords of `UnifiedFlow.process`, which documents them."""

    user_id: str
    channel: str | None
    observer: Observer | None
    persist: bool
    history: Sequence[PriorTurn] | None
    log: LogRequest | None


class UnifiedFlow:
    """Answers questions, turn by turn. One instance serves many turns at once, on one loop."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._refreshing = FewThreads(1, "refresh")
        self._ephemeral = EphemeralTurns(services)

    @classmethod
    def from_config(
        cls,
        home: Path | str | None = None,
        **options: Unpack[WiringOptions],
    ) -> Self:
        """A flow over `home` (see `interventions.home.find_home`), configured by its
        `unified_flow.toml`; settings among the `options` go before what stands there.

        `docs` is a file, a folder, a web page, or a list of them. `model` is a name, or your own
        `Model`; `extra_models` adds models by name, for `roles`. `tools` adds your own functions,
        `tool_modules` those of modules, which a command that resumes a turn finds too;
        `allow_tools` grants tools, `asker` asks a person about the others. `turns` keeps the turns
        instead of the home's folder.
        Raises ConfigError or InputError.
        """
        from unified_flow.wiring import wire

        return cls(wire(home, **options))

    def ask(
        self, question: str, *, session_id: str | None = None, **options: Unpack[ProcessOptions]
    ) -> Turn:
        """`process` for a program without an event loop, in a session of its own unless one is
        named. What it has opened it closes again; for many questions, `async with` the flow keeps
        connections and a local model. Raises what `process` raises."""
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            raise InputError(
                "ask() would hold up the event loop that runs here",
                hint="write: turn = await flow.process(session_id, question)",
            )

        async def answered() -> Turn:
            async with self:
                return await self.process(
                    session_id or new_session_id(ONE_QUESTION), question, **options
                )

        return asyncio.run(answered())

    async def process(
        self,
        session_id: str,
        message: str,
        *,
        user_id: str = "default",
        channel: str | None = None,
        request_id: str | None = None,
        repeatable: bool = True,
        observer: Observer | None = None,
        persist: bool = True,
        history: Sequence[PriorTurn] | None = None,
        log: LogRequest | None = None,
    ) -> Turn:
        """The turn, answered or with a question back (`status`).

        Raises InputError for what cannot be asked, ConfigError or QueueFullError if no turn can
        begin, and the phase's PhaseError once a failure is recorded and the turn has halted.
        A turn that a guardrail or the policy `silent` has silenced is returned, without a response
        (`should_respond`, `error_message`).
        `observer` sees every journal event as it happens. Without `persist` nothing is kept but
        the line of the query log: no message, and the turn itself only until it ends, or, if it
        fails, until its intervention is closed. `history` is the conversation so far, oldest
        first, where the caller knows better than the session store. `log` takes the request's
        line instead of the query log, for a caller that adds to it.
        A message that is delivered again, with its `request_id` and to whichever process of this
        home, gets the answer of the turn that answered it, or is about to; a turn of it whose
        process is gone goes on. One with an id that its sender does not know is not `repeatable`.
        """
        run = TurnRun(self.services)
        question = checked_question(message)
        checked_id(session_id, "session_id")
        user_id = checked_user(user_id)
        may_be_repeated = repeatable and request_id is not None and persist
        request_id = checked_id(request_id or new_request_id(), "request_id")
        channel = checked_channel(channel)
        earlier = None if history is None else checked_history(history)
        asked = {
            "session_id": session_id,
            "request_id": request_id,
            "user_id": user_id,
            "question": question,
        }

        async def answer(delivery: Delivery | None = None) -> Turn:
            await self._refresh_documents(run)
            ledger = None
            if delivery is not None and delivery.begun is not None:
                ledger = await take_over(delivery.begun, request_id, self.services, observer)
            if ledger is None:
                first = {**asked, "channel": channel, "persist": persist}
                ledger = await self._begin(first, run, observer)
            if delivery is not None:
                delivery.begins(ledger.turn.turn_id)
            async with self._removed_unless_needed(ledger):
                if earlier is not None and ledger.turn.history is None:
                    await ledger.record_always(HistoryRead(phase="query_analyzer", turns=earlier))
                try:
                    turn = await self._dispatch(ledger, run, log)
                except PhaseError as exc:
                    if exc.answer != "silence":
                        raise
                    return exc.turn
                if turn.taken_over:
                    await asyncio.to_thread(_resolve_taken_over, turn, self.services)
                return turn

        if not may_be_repeated:
            return await answer()
        async with self.services.turns.delivery("\0".join(asked.values())) as delivery:
            return await self._answered_before(asked, log) or await answer(delivery)

    async def resume(self, ledger: Ledger, log: LogRequest | None = None) -> Turn:
        """Run an opened turn, whose journal says that it is resumed, to its end.

        Most callers want `resume.resumption.resume_turn`, which does all that belongs to it.
        Raises the phase's PhaseError once a failure is recorded.
        """
        run = TurnRun(self.services)
        async with self._removed_unless_needed(ledger):
            return await self._dispatch(ledger, run, log)

    async def _dispatch(self, ledger: Ledger, run: TurnRun, log: LogRequest | None) -> Turn:
        services, error = self.services, None
        try:
            return await services.dispatcher.run(ledger, partial(run_turn, ledger, run))
        except BaseException as exc:
            error = exc
            raise
        finally:
            if error is None and ledger.turn.failure is not None:  # a save's costs no answer
                error = phase_error(ledger.turn, services.settings.language)
            (log or services.query_log.append)(RequestLine.of_turn(ledger.turn, error))

    async def _answered_before(
        self, asked: Mapping[str, str], log: LogRequest | None
    ) -> Turn | None:
        """The turn that answered this very message, if it was delivered before, as a chat's webhook
        does that got no answer in time. None also if its journal is gone or damaged: the message is
        answered again then, and kept once."""
        services = self.services
        turn_id = await asyncio.to_thread(services.sessions.answered, **asked)
        if turn_id is None:
            return None
        with suppress(RetrievalError):
            turn = await TurnArchive(services.turns).load(turn_id)
            if turn is not None and turn.status == "answered":
                (log or services.query_log.append)(RequestLine.of_turn(turn))
                return turn
        return None

    async def _refresh_documents(self, run: TurnRun) -> None:
        """Raises InputError where there is nothing to answer from."""
        documents = self.services.documents
        if documents is None or documents.fresh or not self.services.dispatcher.runs_here:
            return
        # doc.search meets a broken or slow index again, and there it becomes an intervention.
        deadline = asyncio.timeout_at(run.search_ends_at)
        try:
            async with deadline:
                await self._refreshing.run(documents.ensure_fresh)
        except RetrievalError:
            return
        except TimeoutError:
            if not deadline.expired():
                raise

    @asynccontextmanager
    async def _removed_unless_needed(self, ledger: Ledger) -> AsyncIterator[Ledger]:
        """Remove a turn that is not kept at its end, unless it waits for a person."""
        try:
            async with ledger:
                try:
                    yield ledger
                finally:  # while nobody else can run it
                    if not ledger.turn.persist and ledger.turn.waits:
                        self._ephemeral.failed(ledger.turn.turn_id)
                    elif not ledger.turn.persist:
                        with suppress(OSError):
                            await ledger.lease.remove()
        finally:
            if not ledger.turn.persist:
                self._ephemeral.remove_closed_soon()

    async def _begin(
        self, asked: Mapping[str, Any], run: TurnRun, observer: Observer | None
    ) -> Ledger:
        """A turn with the first line in its journal; or nothing at all."""
        if self.services.refuse_when_full and self.services.queue.is_full():
            raise QueueFullError(
                "the intervention queue is full, and refuse_when_full is set",
                hint="resolve or dismiss some first: interventions list",
            )
        turns = self.services.turns

        def first(turn_id: int) -> TurnStarted:
            return TurnStarted(
                turn_id=turn_id,
                policy=self.services.policy.name,
                asked_with=self.services.asked_with,
                **beginning(self.services, recipe=run.recipe),
                **asked,
            )

        try:
            return await Ledger.create(turns, first, observer, kept=asked["persist"])
        except OSError as exc:
            raise NoTurnError(
                f"no turn can be begun in {turns.place()}: {exc.strerror}",
                hint="make room there and make it writable, or name another home with --home",
            ) from exc

    async def process_request(
        self,
        session_id: str,
        message: str,
        *,
        request_id: str | None = None,
        **options: Unpack[ProcessOptions],
    ) -> dict[str, Any]:
        """The same as `process`, but as a dict, for a failed turn too.

        {"response", "error", "error_type", "phase", "intervention_id", "turn_id", "request_id"},
        and "partial" where a failed turn had results (error-handling-architecture.md,
        "Top-Level Error Handler"). Cancellation goes through.
        """
        repeatable = request_id is not None
        request_id = request_id or new_request_id()
        try:
            turn = await self.process(
                session_id, message, request_id=request_id, repeatable=repeatable, **options
            )
        except Exception as exc:  # noqa: BLE001 - the document's last line: nothing else may pass
            return await _failed(exc, session_id, request_id, self.services)
        answer = _answer(redact_for_asker(turn.response or ""), request_id, turn_id=turn.turn_id)
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

    async def aclose(self) -> None:
        """Close the models' connections and the stores."""
        await self._ephemeral.aclose()
        await self.services.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _resolve_taken_over(turn: Turn, services: Services) -> None:
    """What is known of the death of its process is solved: its message was delivered again."""
    with may_stay_open(turn):
        resolve_passed(
            turn,
            services,
            "its message was delivered again, and it went on",
            about=frozenset(),
            outcome=turn.status,
            by=this_process().user,
            via="takeover",
        )


async def _failed(
    error: Exception, session_id: str, request_id: str, services: Services
) -> dict[str, Any]:
    outcome = outcome_of(error, services.policy)
    intervention_id = await report_unhandled(error, outcome, session_id, request_id, services)
    if outcome.silenced:
        message = f"ERROR: {redact_text(str(error))}"
        return _answer("", request_id, error) | {"should_respond": False, "error_message": message}
    if isinstance(error, PhaseError):
        return _answer(error.user_safe_message, request_id, error, turn_id=error.turn_id)
    if outcome.answer in ("refused", "stopped"):
        return _answer(redact_text(str(error)), request_id, error)
    language = services.settings.language
    if not outcome.unreported:
        return _answer(MESSAGES[language]["unavailable"], request_id, error)
    text = safe_message("UNEXPECTED", notified=intervention_id is not None, language=language)
    answer = _answer(text, request_id, error)
    return answer | {"phase": "unknown", "intervention_id": intervention_id}


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
