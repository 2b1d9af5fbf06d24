"""`ai_rules` and `ai_decisions`, read and written. Everything here raises RetrievalError."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.dialects import postgresql, sqlite

from interventions.home import state_folder
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import InputError, RetrievalError
from unified_flow.guardrails.aside import ASIDE, Aside
from unified_flow.guardrails.database import Database, RefusedError
from unified_flow.guardrails.opening import FILE
from unified_flow.guardrails.outcomes import Choice, Outcome
from unified_flow.guardrails.rules import UserRules
from unified_flow.guardrails.tables import MESSAGE_CHARS, ai_decisions, ai_rules

ONCE = ("message_id", "outcome")
# Rules that are deleted and made anew count from 1 again, so that the number alone says little.
Version = tuple[int, datetime]


@dataclass(frozen=True)
class Decision:
    """A row of `ai_decisions`. `message_text` is cut at 500 characters when it is kept.

    `outcome` says at which point it was decided, `retry_count` how often a model was asked again.
    """

    user_id: str
    message_id: str
    decision: Choice
    confidence: float
    reason: str
    matched_rule: str | None
    message_text: str
    outcome: Outcome
    retry_count: int = 0
    snapshot_json: dict[str, Any] = field(default_factory=dict)
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    id: int | None = None


class GuardrailStore:
    """Safe among threads and processes. `aside`: the file for what the database cannot take."""

    def __init__(self, database: Database, aside: Path) -> None:
        self._database = database
        self._aside = Aside(aside)

    @property
    def named(self) -> str:
        return self._database.named

    @property
    def is_there(self) -> bool:
        return self._database.is_there

    def close(self) -> None:
        self._database.close()

    def version(self, user_id: str) -> Version | None:
        """Of the user's rules; None if there are none. What a turn pays when nothing changed."""
        if not self._database.is_there:
            return None
        columns = (ai_rules.c.version, ai_rules.c.updated_at)
        query = sa.select(*columns).where(ai_rules.c.user_id == user_id)
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else (row.version, row.updated_at)

    def rules(self, user_id: str) -> UserRules | None:
        """None for a user who has none: everything is on, and nothing flagged."""
        found = self._rules(ai_rules.c.user_id == user_id)
        return found[0] if found else None

    def all_rules(self) -> list[UserRules]:
        return self._rules(sa.true())

    def _rules(self, which: sa.ColumnElement[bool]) -> list[UserRules]:
        if not self._database.is_there:
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
            why = exc.errors()[0]["msg"] if isinstance(exc, ValidationError) else str(exc)
            raise RetrievalError(
                f"the rules of {row['user_id']} in {self.named} cannot be read: {why}",
                hint="mend the row, or import the rules anew",
            ) from exc

    def change(self, user_id: str, change: Callable[[UserRules], UserRules]) -> UserRules:
        """The user's rules after `change`; nobody else's change is lost. One transaction."""
        with self._database.write(patient=True) as connection:
            before = self._user_rules(_held(connection, user_id))
            after = change(before).model_copy(update={"version": before.version + 1})
            values = after.model_dump(mode="json") | {"updated_at": datetime.now(UTC)}
            connection.execute(
                ai_rules.update().where(ai_rules.c.user_id == user_id).values(values)
            )
        return after

    def forget(self, user_id: str) -> bool:
        """Whether there was a row. What was decided stays."""
        with self._database.write(patient=True) as connection:
            gone = connection.execute(ai_rules.delete().where(ai_rules.c.user_id == user_id))
            return gone.rowcount > 0

    def record(self, decision: Decision) -> None:
        """One row for a message and an outcome: it says what was decided last, and when first.

        What the database cannot take now is kept in a file beside the queue, which the next
        decision brings with it; RetrievalError is raised all the same, for somebody to mend it."""
        row = asdict(decision) | {"message_text": decision.message_text[:MESSAGE_CHARS]}
        row.pop("id")
        try:
            with self._database.write() as connection:
                insert = _insert(connection)(ai_decisions).values(row)
                kept = {"id", "created_at", *ONCE}
                news = {each: insert.excluded[each] for each in row.keys() - kept}
                connection.execute(insert.on_conflict_do_update(index_elements=ONCE, set_=news))
        except RefusedError as exc:
            raise self._put_aside(row, exc, refused=True) from exc
        except RetrievalError as exc:
            raise self._put_aside(row, exc) from exc
        try:
            self._take_in()
        except OSError as exc:
            told = (
                f"what was decided before waits in {self._aside.file}, which cannot be used: {exc}"
            )
            raise RetrievalError(told, hint="mend or move the file aside") from exc

    def _put_aside(
        self, row: dict[str, Any], why: RetrievalError, *, refused: bool = False
    ) -> RetrievalError:
        """What to tell of it."""
        file = self._aside.refused if refused else self._aside.file
        try:
            if refused:
                self._aside.refuse(row, "by the database")
            else:
                self._aside.put(row)
        except OSError as exc:
            lost = f"{why}; nor can {file} take what was decided: {exc}"
            return RetrievalError(lost, hint=why.hint)
        stays = "is in" if refused else "waits in"
        return RetrievalError(f"{why}; what was decided {stays} {file}", hint=why.hint)

    def _take_in(self) -> None:
        """What waited, one by one: a row that is refused stops no other."""
        with self._aside.taken() as rows:
            if not rows:
                return
            with self._database.write() as connection:
                for each in rows:
                    if why := _refusal(connection, each):
                        self._aside.refuse(each, why)

    def decisions(
        self, *, limit: int, user_id: str | None = None, decision: str | None = None
    ) -> list[Decision]:
        """The latest, newest first."""
        if not self._database.is_there:
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
        return [Decision(**row) for row in rows]

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
        if not self._database.is_there:
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


def _refusal(connection: sa.Connection, row: dict[str, Any]) -> str:
    """Why `row` cannot be taken in, if so; a database that is away is no refusal, and raised.

    Taken in once: whoever did so may have died before the file was empty."""
    try:
        with connection.begin_nested():
            insert = _insert(connection)(ai_decisions).values(row)
            connection.execute(insert.on_conflict_do_nothing(index_elements=ONCE))
    except sa.exc.OperationalError:
        raise
    except sa.exc.SQLAlchemyError as exc:
        # Further lines hold the row itself.
        return str(getattr(exc, "orig", None) or exc).partition("\n")[0] or type(exc).__name__
    return ""


def _insert(connection: sa.Connection) -> Any:
    """What knows of rows that are there already is each database's own."""
    return sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert


def _held(connection: sa.Connection, user_id: str) -> dict[str, Any]:
    """The user's row, made if there is none, which nobody else changes before we are done."""
    insert = _insert(connection)
    fresh = UserRules(user_id=user_id).model_dump(mode="json") | {"updated_at": datetime.now(UTC)}
    # Changes nothing of a row that is there, but takes hold of it.
    same = {"user_id": ai_rules.c.user_id}
    held = (
        insert(ai_rules).values(fresh).on_conflict_do_update(index_elements=["user_id"], set_=same)
    )
    return dict(connection.execute(held.returning(ai_rules)).mappings().one())


def store_of(home: Path, settings: GuardrailSettings) -> GuardrailStore:
    """Nothing is opened before it is used. Raises ConfigError."""
    state = state_folder(home)
    if settings.database_url_env is not None:
        database = Database.of_variable(settings.database_url_env)
    else:
        database = Database.of_file(state / FILE)
    return GuardrailStore(database, state / ASIDE)
