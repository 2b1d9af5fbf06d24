"""What a person is asked before a turn goes on: about calls that may have written, and about the
phase's input. Nothing has happened then, and the turn's lock is free."""

from __future__ import annotations

from dataclasses import replace

from interventions.retry.contract import Ask, BegunCall, Edit, Settled
from unified_flow.engine.services import Services
from unified_flow.errors.turns import NotResumableError
from unified_flow.resume import edited_input
from unified_flow.resume.entry_phase import writes_at_stake
from unified_flow.resume.resumption import Resumption
from unified_flow.turns.turn import Turn


def asked(
    wanted: Resumption, turn: Turn, services: Services, *, ask: Ask | None, edit: Edit | None
) -> Resumption:
    """`wanted` with what the person said. `ask` is None if nobody can be asked, `edit` if nobody
    wants to edit. Raises NotResumableError, and what the two raise."""
    if ask is not None and not (wanted.rerun_tools or wanted.tools_done):
        wanted = _about_writes(wanted, turn, services, ask)
    if edit is not None:
        phase, seen, edited = edited_input.edited_input(
            services,
            turn,
            edit,
            from_phase=wanted.from_phase,
            settled=wanted.rerun_tools or wanted.tools_done,
        )
        wanted = replace(wanted, edited_for=phase, edited_from=seen, edited=edited)
    return wanted


def _about_writes(wanted: Resumption, turn: Turn, services: Services, ask: Ask) -> Resumption:
    writes = writes_at_stake(turn, services.settings.limits, from_phase=wanted.from_phase)
    said: set[Settled] = set()
    for write in writes:
        unfinished = not write.done and wanted.from_phase is None
        said.add(ask(BegunCall(turn.turn_id, write.tool, write.args, unfinished)))
        if "leave" in said:
            raise NotResumableError(f"turn {turn.turn_id} was left as it is")
    return replace(
        wanted,
        rerun_tools="again" in said,
        tools_done="done" in said,
        asked_about=tuple(writes),
    )
