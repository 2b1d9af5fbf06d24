"""What a home has kept in files, taken over into the shared database: once, all of it or nothing,
and compared before it counts."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from interventions.errors import ConflictError, LockTimeoutError
from interventions.home import error_logs, state_folder
from interventions.storage.file_store import FileStore, store_at
from interventions.storage.jsonl import lines, parse_line
from interventions.storage.store import Store
from unified_flow.config.tables import GuardrailSettings
from unified_flow.guardrails.guardrails import DATABASE_FILE, open_store
from unified_flow.guardrails.sql_database import SqlDatabase
from unified_flow.guardrails.store import GuardrailStore
from unified_flow.guardrails.user_rules import UserRules
from unified_flow.lib.compact_json import encode
from unified_flow.lib.threads import wait_for
from unified_flow.shared.database import Connection, Database, joining, storable
from unified_flow.shared.queue_store import add_failures
from unified_flow.shared.shared_texts import SharedTexts
from unified_flow.shared.turn_lease import PostgresLease
from unified_flow.stores import grant_store, memory_store, session_store, turn_store
from unified_flow.tools.grants import GrantStore
from unified_flow.turns.memory import MemoryStore
from unified_flow.turns.sessions.store import Sessions
from unified_flow.turns.store import TurnMark, TurnStore
from unified_flow.turns.texts import Change

_LOCK_S = 5.0
_TABLES = ("turns", "interventions", "intervention_archive", "session_turns", "texts")


@dataclass(frozen=True)
class Imported:
    """One kind of what was taken over: how much, and a digest of it, the same in both places."""

    kind: str
    count: int
    digest: str


@dataclass(frozen=True)
class Stores:
    """Where a home keeps what is taken over."""

    turns: TurnStore
    queue: Store
    sessions: Sessions
    memory: MemoryStore
    grants: GrantStore

    @classmethod
    def of(cls, home: Path, *, files: bool = False) -> Stores:
        """With `files`, those on this machine alone, also where [shared] names a database."""
        return cls(
            turn_store(home, files=files),
            FileStore(home) if files else store_at(home),
            session_store(home, files=files),
            memory_store(home, files=files),
            grant_store(home, files=files),
        )


def take_over(source: Path, home: Path, database: Database) -> tuple[list[Imported], bool]:
    """Take over all that `source` has kept; says whether it was taken over by an earlier call, in
    which case nothing is done. `home` has the settings of the guardrails.

    Raises ConflictError if anybody writes in `source`, or the database holds something already;
    RetrievalError for what is damaged; StorageError."""
    name = storable(f"{socket.gethostname()}:{source.resolve()}")
    imports = SharedTexts(database, "import")
    files, shared = Stores.of(source, files=True), Stores.of(home)
    with _quiet(source, files), _alone(database) as session:
        if known := imports.read(name):
            return [Imported(*row) for row in json.loads(known)], True
        _must_be_empty(session)
        wait_for(_add_turns(files.turns, database, session))
        with shared.queue.transaction(_LOCK_S) as work:
            work.state = files.queue.read()
            work.to_archive += reversed(list(files.queue.archived_closed()))
            work.to_journal += reversed(list(files.queue.journal()))
            add_failures(session, _failures(source, files.queue))
        shared.sessions.add_all(files.sessions)
        for user in files.memory.texts.names():
            shared.memory.texts.change(user, _becomes(files.memory.texts.read(user)))
        for grant in files.grants.all():
            shared.grants.add(grant)
        parts = [_compared(kind, of(files), of(shared)) for kind, of in _KINDS.items()]
        parts += _take_over_rules(source, home)
        imports.change(name, _becomes(json.dumps([astuple(part) for part in parts])))
    return parts, False


@contextmanager
def _alone(database: Database) -> Iterator[Connection]:
    """A transaction, and nobody else writes in the database meanwhile: they wait."""
    with database.away(), database.connect() as session:
        # Between two statements it reads files, however many.
        session.execute("SET idle_in_transaction_session_timeout = 0")
        with session.transaction(), joining(session):
            session.execute(f"LOCK TABLE {', '.join(_TABLES)} IN EXCLUSIVE MODE".encode())
            yield session


def _must_be_empty(session: Connection) -> None:
    for table in _TABLES:
        if session.execute(f"SELECT 1 FROM {table} LIMIT 1".encode()).fetchone():
            raise ConflictError(
                f"the database has {table} already",
                hint="a home moves into a new database, before anything else is done there",
            )


async def _add_turns(turns: TurnStore, database: Database, session: Connection) -> None:
    """Write each turn as a run does, and give it its time of change."""
    marks = await turns.marks()
    for turn_id, mark in marks.items():
        if mark.size:  # else its number was taken, and nothing more
            lease = PostgresLease(turn_id, database, max_queued=None)
            await lease.append_all(await turns.read(turn_id))
            await lease.release()
            aged = "UPDATE turns SET changed_at = to_timestamp(%s) WHERE turn_id = %s"
            session.execute(aged, [mark.written_at / 1e9, turn_id])
    if marks:
        sql = "SELECT setval(pg_get_serial_sequence('turns', 'turn_id'), %s)"
        session.execute(sql, [max(marks)])


def _failures(source: Path, queue: Store) -> Iterator[dict[str, Any]]:
    """The lines of the logs, each with the entry that holds it."""
    for path in error_logs(source):
        for _, raw in lines(path):
            line = parse_line(raw) or {}
            if line.get("intervention_id"):
                yield line
            elif line.get("admission") == "dropped" and path.name.startswith("emergency_"):
                yield {**line, "intervention_id": queue.holder(str(line.get("id")))}


def _becomes(text: str) -> Change[None]:
    return lambda before: (text, None)


# Nobody else writes in the files


@contextmanager
def _quiet(source: Path, files: Stores) -> Iterator[None]:
    """The queue is locked meanwhile, and no turn began or went on."""
    try:
        with files.queue.transaction(_LOCK_S) as work:
            if work.state.unusable:
                raise ConflictError("the queue has damaged entries", hint="interventions doctor")
            before = wait_for(_marks(files.turns))
            yield
            if wait_for(_marks(files.turns)) != before:
                raise ConflictError("a turn went on meanwhile", hint="stop it, and try again")
    except LockTimeoutError as exc:
        raise ConflictError(f"somebody writes in {source}: {exc}", hint="stop it first") from exc


async def _marks(turns: TurnStore) -> dict[int, TurnMark]:
    marks = await turns.marks()
    for turn_id in marks:
        if await turns.is_held(turn_id):
            raise ConflictError(f"turn {turn_id} is running", hint="wait for it, or stop it")
    if dead := await turns.unreleased():
        what = f"there are turns that died and are not reported yet: {dead}"
        raise ConflictError(what, hint="unified-flow turns recover")
    return marks


# What is compared


def _compared(kind: str, in_files: Iterable[Any], in_database: Iterable[Any]) -> Imported:
    """What is in both. Raises ConflictError if it differs."""
    there, here = _part(kind, in_files), _part(kind, in_database)
    if there != here:
        raise ConflictError(f"{kind} differ: {there} in files, {here} in the database")
    return here


def _part(kind: str, items: Iterable[Any]) -> Imported:
    digests = [sha256(json.dumps(item, sort_keys=True).encode()).digest() for item in items]
    return Imported(kind, len(digests), sha256(b"".join(digests)).hexdigest()[:16])


def _turns(stores: Stores) -> Iterator[Any]:
    for turn_id, mark in wait_for(stores.turns.marks()).items():
        if mark.size:
            events = wait_for(stores.turns.read(turn_id))
            yield turn_id, [encode(event).decode() for event in events]


def _memories(stores: Stores) -> Iterator[Any]:
    texts = stores.memory.texts
    for name in texts.names():
        yield from ((name, line) for line in texts.read(name).split("\n") if line)


_KINDS: Mapping[str, Callable[[Stores], Iterable[Any]]] = {
    "turns": _turns,
    "interventions": lambda stores: stores.queue.read().entries,
    "history": lambda stores: stores.queue.archived_closed(),
    "transitions": lambda stores: stores.queue.journal(),
    "sessions": lambda stores: stores.sessions.rows(),
    "memories": _memories,
    "grants": lambda stores: [grant.model_dump(mode="json") for grant in stores.grants.all()],
}


def _take_over_rules(source: Path, home: Path) -> list[Imported]:
    """All or none, in a transaction of their own."""
    file = state_folder(source) / DATABASE_FILE
    if not file.exists():
        return []
    with (
        closing(GuardrailStore(SqlDatabase.of_file(file), file)) as there,
        closing(open_store(home, GuardrailSettings())) as here,
    ):
        theirs = {rules.user_id: rules for rules in there.all_rules()}

        def moved(before: UserRules) -> UserRules:
            rules = theirs[before.user_id]
            if before.version and before.as_row() != rules.as_row():
                raise ConflictError(
                    f"{before.user_id} has other rules in {here.named} already",
                    hint="delete them in one of the two places, in the table ai_rules",
                )
            return rules

        here.change_all(theirs, moved)
        ours = (rules.as_row() for rules in here.all_rules() if rules.user_id in theirs)
        in_files = (rules.as_row() for rules in theirs.values())
        return [_compared("rules", _by_user(in_files), _by_user(ours))]


def _by_user(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each database has its own order of texts."""
    return sorted(rows, key=lambda row: str(row["user_id"]))
