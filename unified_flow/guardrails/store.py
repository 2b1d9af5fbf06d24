"""`ai_rules` and `ai_decisions`, read and written. Everything that `GuardrailStore` does raises
RetrievalError; decisions that the database could not take wait in a private file.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from filelock import FileLock, Timeout
from pydantic import ValidationError
from sqlalchemy.dialects import postgresql, sqlite

from interventions.storage import jsonl
from interventions.times import to_text
from unified_flow.errors import InputError, RetrievalError
from unified_flow.guardrails.decisions import Outcome, RecordedDecision
from unified_flow.guardrails.matcher import Matcher
from unified_flow.guardrails.schema import MESSAGE_CHARS, ai_decisions, ai_rules
from unified_flow.guardrails.sql_database import RefusedError, SqlDatabase
from unified_flow.guardrails.user_rules import UserRules
from unified_flow.turns.input_checks import first_mistake

logger = logging.getLogger("unified_flow.guardrails")
WAITING = "ai_decisions_waiting.jsonl"
ONE_ROW = ("message_id", "outcome")
MOST_MATCHERS = 256
# Changes with a row, also where SQL leaves its `version` and `updated_at`: PostgreSQL knows the
# transaction that wrote it; on SQLite it is the row itself, as it is stored.
VERSION: dict[str, list[sa.ColumnElement[Any]]] = {
    "postgresql": [sa.cast(sa.literal_column("xmin"), sa.Text)],
    "sqlite": [sa.type_coerce(column, sa.Text) for column in ai_rules.columns],
}
Version = tuple[Any, ...]


@dataclass(frozen=True)
class ActiveRules:
    """A user's rules, ready to match."""

    rules: UserRules
    matcher: Matcher


class GuardrailStore:
    """Safe among threads and processes. `outbox`: the file for what the database cannot take."""

    def __init__(self, database: SqlDatabase, outbox: Path) -> None:
        self._database = database
        self._outbox = DecisionOutbox(outbox)
        self.named = database.named
        self._built = lru_cache(MOST_MATCHERS)(self._build)

    def close(self) -> None:
        self._database.close()

    def active_rules(self, user_id: str) -> ActiveRules | None:
        """None for a user without rules. Read and built anew only after a change; the matchers of
        the users seen last stay in memory."""
        version = self.version(user_id)
        return None if version is None else self._built(user_id, version)

    def _build(self, user_id: str, _version: Version) -> ActiveRules | None:
        """The version was read first: rules that are newer are read once more, never less."""
        rules = self.rules(user_id)
        return None if rules is None else ActiveRules(rules, Matcher(rules.rules()))

    def version(self, user_id: str) -> Version | None:
        """The version of the user's rules, or None: all that a turn reads if nothing changed."""
        if not self._database.exists:
            return None
        with self._database.read() as connection:
            columns = VERSION[connection.dialect.name]
            query = sa.select(*columns).where(ai_rules.c.user_id == user_id).select_from(ai_rules)
            row = connection.execute(query).first()
        return None if row is None else tuple(row)

    def rules(self, user_id: str) -> UserRules | None:
        """None for a user who has none: everything is on, and nothing flagged."""
        found = self._rules(ai_rules.c.user_id == user_id)
        return found[0] if found else None

    def all_rules(self) -> list[UserRules]:
        return self._rules(sa.true())

    def change(self, user_id: str, change: Callable[[UserRules], UserRules]) -> UserRules:
        """The user's rules after `change`, in one transaction: no other change is lost."""
        return self.change_all([user_id], change)[0]

    def change_all(
        self, user_ids: Iterable[str], change: Callable[[UserRules], UserRules]
    ) -> list[UserRules]:
        """As `change`, those of all these users or of none."""
        changed = []
        with self._database.write(patient=True) as connection:
            for user_id in user_ids:
                before = self._user_rules(_locked_row(connection, user_id))
                after = change(before).model_copy(update={"version": before.version + 1})
                values = after.model_dump(mode="json") | {"updated_at": datetime.now(UTC)}
                connection.execute(
                    ai_rules.update().where(ai_rules.c.user_id == user_id).values(values)
                )
                changed.append(after)
        return changed

    def delete(self, user_id: str) -> bool:
        """Whether the user had rules. The recorded decisions stay."""
        with self._database.write(patient=True) as connection:
            gone = connection.execute(ai_rules.delete().where(ai_rules.c.user_id == user_id))
            return gone.rowcount > 0

    def record(self, decision: RecordedDecision) -> None:
        """Keep one row for a message and an outcome: with what was decided last, and when first.

        What the database cannot take waits in the outbox, which the next decision drains;
        RetrievalError is raised all the same, so that a person mends it."""
        row = asdict(decision) | {"message_text": decision.message_text[:MESSAGE_CHARS]}
        row.pop("id")
        try:
            with self._database.write() as connection:
                insert = _insert(connection)(ai_decisions).values(row)
                stays = {"id", "created_at", *ONE_ROW}
                changed = {each: insert.excluded[each] for each in row.keys() - stays}
                connection.execute(
                    insert.on_conflict_do_update(index_elements=ONE_ROW, set_=changed)
                )
        except RetrievalError as exc:
            raise self._set_aside(row, exc) from exc
        try:
            self._drain_outbox()
        except OSError as exc:
            raise RetrievalError(
                f"earlier decisions wait in {self._outbox.file}, which cannot be used: {exc}",
                hint="mend or move the file aside",
            ) from exc

    def decisions(
        self, *, limit: int, user_id: str | None = None, decision: str | None = None
    ) -> list[RecordedDecision]:
        """The latest, newest first."""
        if not self._database.exists:
            return []
        query = sa.select(ai_decisions).order_by(
            ai_decisions.c.created_at.desc(), ai_decisions.c.id.desc()
        )
        if user_id is not None:
            query = query.where(ai_decisions.c.user_id == user_id)
        if decision is not None:
            query = query.where(ai_decisions.c.decision == decision)
        with self._database.read() as connection:
            rows = connection.execute(query.limit(limit)).mappings().all()
        return [RecordedDecision(**row) for row in rows]

    def count_since(self, moment: datetime, outcomes: tuple[Outcome, ...]) -> int:
        """How many decisions there were of these outcomes."""
        query = (
            sa.select(sa.func.count())
            .select_from(ai_decisions)
            .where(ai_decisions.c.created_at >= moment, ai_decisions.c.outcome.in_(outcomes))
        )
        with self._database.read() as connection:
            return connection.scalar(query) or 0

    def by_day(self, days: int, now: datetime | None = None) -> list[dict[str, Any]]:
        """{day, outcome, matched_rule, count, retried} for the last `days` days in UTC."""
        if not self._database.exists:
            return []
        today = (now or datetime.now(UTC)).replace(hour=0, minute=0, second=0, microsecond=0)
        day = sa.cast(sa.func.date(ai_decisions.c.created_at), sa.String).label("day")
        groups = (day, ai_decisions.c.outcome, ai_decisions.c.matched_rule)
        query = (
            sa.select(
                *groups,
                sa.func.count().label("count"),
                sa.func.sum(sa.case((ai_decisions.c.retry_count > 0, 1), else_=0)).label("retried"),
            )
            .where(ai_decisions.c.created_at >= today - timedelta(days=days - 1))
            .group_by(*groups)
            .order_by(*groups)
        )
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _rules(self, which: sa.ColumnElement[bool]) -> list[UserRules]:
        if not self._database.exists:
            return []
        query = sa.select(ai_rules).where(which).order_by(ai_rules.c.user_id)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [self._user_rules(dict(row)) for row in rows]

    def _user_rules(self, row: dict[str, Any]) -> UserRules:
        row.pop("updated_at")
        try:
            return UserRules(**row)
        except (ValidationError, InputError) as exc:
            why = first_mistake(exc) if isinstance(exc, ValidationError) else str(exc)
            raise RetrievalError(
                f"the rules of {row['user_id']} in {self.named} cannot be read: {why}",
                hint="mend the row, or import the rules anew",
            ) from exc

    def _set_aside(self, row: dict[str, Any], why: RetrievalError) -> RetrievalError:
        """The error to raise, which says where the row is now."""
        refused = isinstance(why, RefusedError)
        file = self._outbox.dead_letters if refused else self._outbox.file
        try:
            if refused:
                self._outbox.reject(row, "by the database")
            else:
                self._outbox.put(row)
        except OSError as exc:
            lost = f"{why}; nor can {file} take the decision: {exc}"
            return RetrievalError(lost, hint=why.hint)
        where = "is in" if refused else "waits in"
        return RetrievalError(f"{why}; the decision {where} {file}", hint=why.hint)

    def _drain_outbox(self) -> None:
        with self._outbox.drain() as rows:
            if not rows:
                return
            with self._database.write() as connection:
                for row in rows:
                    if refusal := _refusal(connection, row):
                        self._outbox.reject(row, refusal)


def _refusal(connection: sa.Connection, row: dict[str, Any]) -> str:
    """Why `row` cannot be inserted; empty if it is. Raises if the database is away.

    A row that is there already is no refusal: the process may have died before the file was empty.
    """
    try:
        with connection.begin_nested():
            insert = _insert(connection)(ai_decisions).values(row)
            connection.execute(insert.on_conflict_do_nothing(index_elements=ONE_ROW))
    except sa.exc.OperationalError:
        raise
    except sa.exc.SQLAlchemyError as exc:
        # Further lines hold the row itself.
        return str(getattr(exc, "orig", None) or exc).partition("\n")[0] or type(exc).__name__
    return ""


def _insert(connection: sa.Connection) -> Any:
    """`ON CONFLICT` is written by each dialect's own insert."""
    return sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert


def _locked_row(connection: sa.Connection, user_id: str) -> dict[str, Any]:
    """The user's row, made if there is none, locked until the transaction ends."""
    fresh = UserRules(user_id=user_id).model_dump(mode="json") | {"updated_at": datetime.now(UTC)}
    # Changes nothing of a row that is there, but locks it.
    same = {"user_id": ai_rules.c.user_id}
    locked = (
        _insert(connection)(ai_rules)
        .values(fresh)
        .on_conflict_do_update(index_elements=["user_id"], set_=same)
    )
    return dict(connection.execute(locked.returning(ai_rules)).mappings().one())


class DecisionOutbox:
    """Safe among threads and processes. Raises OSError where the disk takes nothing either."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def dead_letters(self) -> Path:
        """Rows that no database takes, however often it is tried: for a person to look at."""
        return self.file.with_name(f"{self.file.name}.refused")

    def put(self, row: dict[str, Any]) -> None:
        with self._lock():
            jsonl.append(self.file, _line(row), durable=True)

    def reject(self, row: dict[str, Any], why: str) -> None:
        """Move the row to the dead letters, so that it holds up no other."""
        logger.critical("a decision was refused, see %s: %s", self.dead_letters, why)
        jsonl.append(self.dead_letters, _line(row), durable=True)

    @contextmanager
    def drain(self) -> Iterator[list[dict[str, Any]]]:
        """The rows that wait; removed once the block ends well. None while another drains it."""
        lock = self._lock(wait_s=0)
        with suppress(Timeout), suppress(FileNotFoundError):
            if self.file.stat().st_size > 0:
                lock.acquire()
        if not lock.is_locked:
            yield []
            return
        try:
            yield list(self._rows())
            os.truncate(self.file, 0)
        finally:
            lock.release()

    def _rows(self) -> Iterator[dict[str, Any]]:
        for line in self.file.read_bytes().splitlines():
            row = _parsed(line)
            if row is not None:
                yield row
                continue
            logger.critical("a decision that waited cannot be read, see %s", self.dead_letters)
            jsonl.append(self.dead_letters, line, durable=True)

    def _lock(self, wait_s: float = -1) -> FileLock:
        # A new one each time, so that it holds among threads too.
        return FileLock(f"{self.file}.lock", timeout=wait_s, mode=0o600)


def _line(row: dict[str, Any]) -> bytes:
    stored = row | {"created_at": to_text(row["created_at"])}
    return json.dumps(stored, default=str).encode()


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        row = dict(json.loads(line))
        return row | {"created_at": datetime.fromisoformat(row["created_at"])}
    except (ValueError, TypeError, KeyError):
        return None
