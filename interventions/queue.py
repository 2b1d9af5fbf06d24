"""The queue as a program uses it: put failures, close them, and ask what there is.

Every change is one transaction of the storage; what changes is decided by pure functions
(`admission/decision.py`, `transitions.py`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from heapq import merge
from itertools import islice
from math import inf
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from interventions import errors, transitions
from interventions.admission.capture import FOREIGN, text_of
from interventions.admission.decision import limit_reached
from interventions.admission.notifications import notify
from interventions.admission.preparation import MAX_MESSAGE, bare_failure, prepare
from interventions.admission.put import admit, log_admission
from interventions.entry import (
    Entry,
    EntryFields,
    Transition,
    closed_at,
    fingerprints,
    is_open,
    open_ones,
    short_id,
    similar,
    turns_needed,
)
from interventions.health import Health, Trends, Window, health, trends
from interventions.home import find_home
from interventions.plaintext import one_line
from interventions.secrets.redaction import redact_text
from interventions.settings import Limits, QueueSettings, settings_of
from interventions.storage.error_log import log_emergency, log_failures, log_line
from interventions.storage.file_store import store_at
from interventions.storage.queue_file import QueueState
from interventions.storage.store import Admission, PutResult, Store, Transaction, parse_entry
from interventions.times import to_text, utc_now
from interventions.transitions import Actor

if TYPE_CHECKING:
    from interventions.admission.request import InterventionRequest

LAST = "last"

logger = logging.getLogger("interventions")


class ActorOptions(TypedDict, total=False):
    """Who makes the change (by default the user of this process), and through what (`library`)."""

    by: str | None
    via: str


class ChangeOptions(ActorOptions, total=False):
    """An entry that is not `expected_version` is left alone (ConflictError)."""

    expected_version: int | None


class InterventionQueue:
    """If the storage fails every method raises StorageError, but for `put`, which then answers that
    the failure was dropped. A bad argument is an ArgumentError, and nothing is written.

    `home` is the folder that holds `shared_state/` and `logs/`; without it the nearest one is
    found. `lock_timeout_s` is how long one call waits for others. `store` replaces the JSON file,
    as the setting `[shared]` does. `limits` are the fields of `Limits`: `max_size` and others.
    """

    def __init__(
        self,
        home: Path | str | None = None,
        *,
        lock_timeout_s: float = 5.0,
        store: Store | None = None,
        **limits: int,
    ) -> None:
        place = _home(home)
        errors.expect("lock_timeout_s", lock_timeout_s, int, float)
        if not 0 <= lock_timeout_s < inf:
            what = "lock_timeout_s is no number of seconds"
            raise errors.ArgumentError(what, argument="lock_timeout_s")
        self.home, self.limits, self.lock_timeout_s = place, Limits(**limits), lock_timeout_s
        self.store: Store = store_at(place) if store is None else store

    def put(self, request: InterventionRequest) -> Admission:
        """Admit one failure. What cannot be stored goes to the emergency log, else to stderr.

        Raises ArgumentError for what is no request, or has fields that could not be read again.
        """
        from interventions.admission.request import InterventionRequest

        errors.expect("request", request, InterventionRequest)
        return self.put_prepared(prepare(request, self.home))

    async def aput(self, request: InterventionRequest) -> Admission:
        """`put` in a thread: the event loop goes on while somebody else holds the lock."""
        from asyncio import to_thread

        return await to_thread(self.put, request)

    def put_prepared(self, failure: Entry) -> Admission:
        """`put` of a failure as `preparation.py` makes it of a request."""
        try:
            result = self.store.submit(failure, self.limits, self.lock_timeout_s, admit)
        except errors.JoinedPutError:
            raise
        except errors.StorageError as error:
            result = self._not_stored(failure, error.reason, str(error))
        except Exception as error:  # noqa: BLE001 - the caller is failing already; its error must win
            result = self._not_stored(failure, "internal", f"{type(error).__name__}: {error}")
        failure, admission = result.failure, result.admission
        if not admission:
            log_emergency(self.home, failure, admission)
        log_admission(failure, admission, self.limits)
        if result.entry is not None and result.event:
            notify(self.home, result.event, result.entry, failure)
        return admission

    def resolve(self, intervention_id: str, note: str, **options: Unpack[ChangeOptions]) -> Entry:
        """Close it as solved, unverified. ConflictError when it is closed."""
        return self._change(transitions.resolve, intervention_id, options, note=_note(note))

    def close_retried(
        self, ids: Collection[str], note: str, *, outcome: str, **options: Unpack[ActorOptions]
    ) -> tuple[str, ...]:
        """Resolve, verified, those of the entries that are open: a resumed turn got past what they
        are about, and `outcome` is how it ended. What somebody closed meanwhile stays as they left
        it. The ids of those that were resolved now.
        """
        actor, clean = Actor.current(**options), _note(note)
        ended = _clean("outcome", outcome, 100)
        resolved = partial(transitions.resolve, actor=actor, note=clean, verified=ended)
        return self._change_open("resolve", ids, resolved, actor)

    def dismiss(
        self, intervention_id: str, note: str = "", **options: Unpack[ChangeOptions]
    ) -> Entry:
        """Close it as not worth fixing; it never counts as solved."""
        clean = _clean("note", note)
        return self._change(transitions.dismiss, intervention_id, options, note=clean)

    def supersede(
        self, ids: Collection[str], why: str, **options: Unpack[ActorOptions]
    ) -> tuple[str, ...]:
        """Mark those of the entries that are open and do not say so yet: no turn needs their fix
        any more. The ids of those that were marked now."""
        actor, fields = Actor.current(**options), EntryFields(superseded=_clean("why", why))
        return self._change_open("supersede", ids, lambda entry: fields, actor)

    def snooze(
        self,
        intervention_id: str,
        *,
        until: datetime | None = None,
        duration: timedelta | None = None,
        until_n_more: int | None = None,
        **options: Unpack[ChangeOptions],
    ) -> Entry:
        """Exactly one of the three. It stays open; more of the same are counted on it."""
        when = {"until": until, "duration": duration, "until_n_more": until_n_more}
        return self._change(transitions.snooze, intervention_id, options, **when)

    def reopen(self, intervention_id: str, **options: Unpack[ChangeOptions]) -> Entry:
        """Raises ConflictError when it is open, LimitError when it would pass a limit."""
        return self._change(transitions.reopen, intervention_id, options)

    def assign(
        self, intervention_id: str, owner: str | None, **options: Unpack[ChangeOptions]
    ) -> Entry:
        """`owner=None` takes it from its owner."""
        name = _clean("owner", owner, 100) or None if owner is not None else None
        return self._change(transitions.assign, intervention_id, options, owner=name)

    def undo(
        self, intervention_id: str | None = None, **options: Unpack[ChangeOptions]
    ) -> tuple[Transition, Entry]:
        """Take back the last transition, of this entry or of all: (what was undone, the entry now).

        Raises NotFoundError when there is none, ConflictError when the entry changed since or is
        not `expected_version`.
        """
        actor = Actor.current(**options)
        with self.store.transaction(self.lock_timeout_s) as work:
            here = {entry["id"]: entry for entry in work.state.entries}
            wanted = None
            if intervention_id is not None:
                wanted = self._find(here.values(), intervention_id)["id"]
            found = transitions.last_undoable(
                self.store.journal(wanted),
                lambda name: here.get(name) or self.store.archived_one(name),
            )
            if found is None:
                hint = "history: interventions history"
                raise errors.NotFoundError("there is nothing to undo", hint=hint)
            line, before = found
            self.check_version(before, actor.expected_version)
            after = self._write(work, "undo", before, transitions.undo(before, line), actor)
            work.to_journal[-1]["undoes"] = line["transition_id"]
        return line, after

    def is_full(self) -> bool:
        """Whether the next new failure would be dropped (`refuse_when_full` asks this)."""
        return self.open_count() >= self.limits.max_size

    def open_count(self) -> int:
        return sum(1 for entry in self.entries() if is_open(entry))

    def entries(self) -> tuple[Entry, ...]:
        """What is in the queue now: open entries and the latest closed ones."""
        return self.store.read().entries

    def turns_needed(self) -> set[int]:
        """The turns that a failure waits with, in an open entry or in the emergency log."""
        # The log first, from which `drain` moves failures into entries.
        return self.store.waiting_turns() | turns_needed(self.entries())

    def history(self, limit: int | None = None) -> list[Entry]:
        """The closed entries, those of the archive included, the latest first."""
        return list(islice(self.closed(), limit))

    def closed(self, parse: Callable[[bytes], Entry | None] = parse_entry) -> Iterator[Entry]:
        """`history`, each entry read when it is asked for; `parse` has the archive's lines."""
        entries = self.entries()
        here = {entry["id"] for entry in entries}
        latest = sorted((e for e in entries if not is_open(e)), key=closed_at, reverse=True)
        past = (entry for entry in self.store.archived_closed(parse) if entry["id"] not in here)
        return merge(latest, past, key=closed_at, reverse=True)

    def find(self, intervention_id: str) -> Entry:
        """By id or unique prefix, in the queue and in the archive.

        Raises NotFoundError or AmbiguousIdError.
        """
        return self._find(self.entries(), intervention_id)

    def get(self, intervention_id: str) -> InterventionRequest:
        """`find`, as a request."""
        from interventions.admission.request import InterventionRequest

        return InterventionRequest.model_validate(self.find(intervention_id))

    def similar(self, intervention_id: str, *, limit: int | None = None) -> list[Entry]:
        """Entries resolved before with one of this entry's fingerprints, as `similar` has them.
        `limit` is how many records of the archive are looked at."""
        current = {entry["id"]: entry for entry in self.entries()}
        entry = self._find(current.values(), intervention_id)
        past = islice(self.store.archived_resolved(fingerprints(entry)), limit)
        others = {other["id"]: other for other in past} | current
        return similar(entry, others.values())

    def journal(self, intervention_id: str | None = None) -> list[Transition]:
        """Who did what when, oldest first."""
        return list(self.store.journal(intervention_id))[::-1]

    def health(self, state: QueueState | None = None, now: datetime | None = None) -> Health:
        """The figures of `state`, by default of the present one."""
        state = state or self.store.read()
        figures = self.store.archived_figures({entry["id"] for entry in state.entries})
        logged = self.store.dropped_by_reason()
        return health(state, figures, logged, self.limits, now or utc_now())

    def trends(self, window: Window, now: datetime | None = None) -> Trends:
        """How failures came and were closed in the window that ends now."""
        entries, now = self.store.read().entries, now or utc_now()
        since, own = window.since(now), {entry["id"] for entry in entries}
        archived = self.store.archived_figures(own, to_text(since))
        failures = self.store.failures_since(since, window.step)
        found = trends(failures, archived, entries, window, now)
        for cause in found["causes"]:
            cause["sample"] = one_line(": ".join(self.store.latest_failure(cause["fingerprint"])))
        return found

    def _find(self, current: Iterable[Entry], wanted: str) -> Entry:
        """Among these and in the archive: by id, by any unique prefix of it or of its random part,
        or `last` for the newest of these. Raises NotFoundError or AmbiguousIdError."""
        errors.expect("intervention_id", wanted, str)
        here = {entry["id"]: entry for entry in current}
        wanted = wanted.strip()
        if not wanted:
            raise errors.NotFoundError("no id was given", hint="ids: interventions list")
        if wanted == LAST and here:
            return list(here.values())[-1]
        if whole := here.get(wanted) or self.store.archived_one(wanted):
            return whole
        fits = [n for n in here if n.startswith(wanted) or short_id(n).startswith(wanted)]
        candidates = sorted({*fits, *self.store.archived_ids(wanted)})
        if len(candidates) > 1:
            what = f"{wanted!r} fits {len(candidates)} interventions: {', '.join(candidates[:10])}"
            raise errors.AmbiguousIdError(what, candidates=candidates, hint="give more of the id")
        for name in candidates:
            if found := here.get(name) or self.store.archived_one(name):
                return found
        what = f"no intervention has an id that begins with {wanted!r}"
        hint = "open ones: interventions list; closed ones: interventions history"
        raise errors.NotFoundError(what, hint=hint)

    def _not_stored(self, failure: Entry, reason: str, detail: str) -> PutResult:
        result = PutResult.dropped(failure, reason, detail)
        log_failures(self.home, [log_line(result)])
        return result

    def _change(
        self,
        action: Callable[..., EntryFields],
        intervention_id: str,
        options: ChangeOptions,
        **given: Any,
    ) -> Entry:
        """The entry after an action of `transitions.py` with what was given for it."""
        actor = Actor.current(**options)
        with self.store.transaction(self.lock_timeout_s) as work:
            before = self._find(work.state.entries, intervention_id)
            self.check_version(before, actor.expected_version)
            return self._write(work, action.__name__, before, action(before, actor, **given), actor)

    def _change_open(
        self, action: str, ids: Collection[str], fields_of: Callable[..., EntryFields], actor: Actor
    ) -> tuple[str, ...]:
        """Change those of the entries that are open; the ids of those that differ afterwards."""
        errors.expect("ids", ids, Collection)
        changed = []
        with self.store.transaction(self.lock_timeout_s) as work:
            for entry in open_ones(work.state.entries):
                if entry["id"] in ids and not (fields := fields_of(entry)).items() <= entry.items():
                    changed.append(self._write(work, action, entry, fields, actor)["id"])
        return tuple(changed)

    def _write(
        self, work: Transaction, action: str, before: Entry, fields: EntryFields, actor: Actor
    ) -> Entry:
        after = transitions.change(work, action, before, fields, actor, self.limits.max_size)
        if is_open(after) and not is_open(before):
            others = [entry for entry in work.state.entries if entry["id"] != after["id"]]
            limit, words = limit_reached(others, after, self.limits)
            if limit:
                what = f"cannot {action} {after['id']}: {words}"
                raise errors.LimitError(what, hint="resolve others first")
        return after

    def check_version(self, entry: Entry, version: int | None) -> None:
        """Raises ConflictError for another version than that, with who made it."""
        errors.expect("expected_version", version, int, NoneType)
        if version is None or entry["version"] == version:
            return
        line = next(self.store.journal(entry["id"]), None)
        last = f": {line['action']} by {line['by']} at {line['at']}" if line else ""
        what = f"{entry['id']} is version {entry['version']}, not {version}{last}"
        raise errors.ConflictError(what, hint=f"look again: interventions show {entry['id']}")


def queue_at(home: Path | str | None = None) -> InterventionQueue:
    """The queue of a home, with the settings of that home."""
    place = _home(home)
    settings = asdict(settings_of(place, QueueSettings))
    del settings["refuse_when_full"]  # is for what begins turns
    return InterventionQueue(place, **settings)


def record_failure(
    error: Exception,
    about: Mapping[str, Any],
    queue: InterventionQueue | None,
    home: Path | str | None,
) -> str | None:
    """`put` for whoever stands in an `except`: it never raises, and records what it can. The id of
    the entry, None when there is none. `about` is for `InterventionRequest.from_exception`."""
    try:
        place = queue if isinstance(queue, InterventionQueue) else _queue_or_default(home)
        try:
            from interventions.admission.request import InterventionRequest

            request = InterventionRequest.from_exception(error, home=place.home, **about)
            return place.put(request).intervention_id
        except FOREIGN as trouble:
            return place.put_prepared(bare_failure(error, trouble)).intervention_id
    except FOREIGN as trouble:  # not even a folder can be found
        result = PutResult.dropped(bare_failure(error, trouble), "internal", text_of(trouble))
        log_emergency(Path(), result.failure, result.admission)
        return None


def _queue_or_default(home: Path | str | None) -> InterventionQueue:
    """With the settings of the home, or without them, or the queue of another home, rather than
    not at all."""
    try:
        return queue_at(home)
    except errors.SettingsError as error:
        logger.warning("the queue's own limits are not used: %s", error)
        return InterventionQueue(home)
    except errors.ArgumentError as error:
        logger.warning("%s; the nearest home is used", error)
        return _queue_or_default(None)


def _home(home: Path | str | None) -> Path:
    try:
        place = find_home(home)
        if b"\0" not in os.fsencode(place):
            return place
        why = "it holds a null character"
    except (TypeError, ValueError, RuntimeError) as error:
        why = str(error)
    raise errors.ArgumentError(f"home is no folder: {why}", argument="home", hint="give a path")


def _clean(argument: str, text: str, limit: int = MAX_MESSAGE) -> str:
    errors.expect(argument, text, str)
    return redact_text(text.strip(), limit)


def _note(note: str) -> str:
    clean = _clean("note", note)
    if not clean:
        raise errors.ArgumentError("a resolution needs a note", argument="note")
    return clean
