"""Rules and decisions in SQLite and in a real PostgreSQL."""

from __future__ import annotations

import json
import socket
import sqlite3
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from shutil import copyfile

import pytest
import sqlalchemy as sa

from tests.forked import Process
from tests.servers.postgres import Hanging
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import ConfigError, RetrievalError
from unified_flow.guardrails.decisions import BlocksOfDay, RecordedDecision, stats_of
from unified_flow.guardrails.guardrails import open_store
from unified_flow.guardrails.schema import metadata
from unified_flow.guardrails.sql_database import MIGRATIONS, SqlDatabase
from unified_flow.guardrails.store import GuardrailStore
from unified_flow.guardrails.user_rules import UserRules
from unified_flow.models.circuit_breaker import CircuitRules

COMPAT = Path(__file__).parents[2] / "compat/v0_1/shared_state/guardrails.sqlite3"
NUMBER = count()
DOCUMENTED_RULES = {
    *("user_id", "ai_control_enabled", "ai_enabled_for_chats", "ai_enabled_for_comments"),
    *("flagged_keywords", "flagged_phrases"),
}
DOCUMENTED_DECISIONS = {
    *("user_id", "message_id", "decision", "confidence", "reason", "matched_rule"),
    *("message_text", "snapshot_json"),
}


def _decision(**fields: object) -> RecordedDecision:
    made = {
        "user_id": "ada",
        "message_id": f"message {next(NUMBER)}",
        "decision": "ignore",
        "confidence": 0.95,
        "reason": "Flagged keyword detected: 'spam'",
        "matched_rule": "flagged_keyword:spam",
        "message_text": "spam",
        "outcome": "pre_blocked",
    }
    return RecordedDecision(**(made | fields))  # type: ignore[arg-type]


def _flag(*keywords: str):
    return lambda rules: rules.model_copy(
        update={"flagged_keywords": (*rules.flagged_keywords, *keywords)}
    )


def _sql(store: GuardrailStore, statement: str, *words: list[str]) -> None:
    """Runs `statement` with `words` as each database writes them in SQL."""
    with store._database.write() as connection:
        if connection.dialect.name == "postgresql":
            written = [f"ARRAY[{str(each)[1:-1]}]" for each in words]
        else:
            written = [f"'{json.dumps(each)}'" for each in words]
        connection.exec_driver_sql(statement.format(*written))


def _flagged(store: GuardrailStore, text: str) -> list[str]:
    active = store.active_rules("ada")
    return [match.rule.text for match in active.matcher.matches(text)] if active else []


def test_the_tables_have_every_documented_column(database: SqlDatabase) -> None:
    with database.read() as connection:
        look = sa.inspect(connection)
        rules = {column["name"] for column in look.get_columns("ai_rules")}
        decisions = {column["name"] for column in look.get_columns("ai_decisions")}
    assert rules >= DOCUMENTED_RULES
    assert decisions >= DOCUMENTED_DECISIONS


def test_a_database_of_version_0_1_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "guardrails.sqlite3"
    copyfile(COMPAT, file)
    store = GuardrailStore(SqlDatabase.of_file(file), tmp_path / "outbox.jsonl")
    before = len(store.decisions(limit=99))
    store.record(_decision(message_id="m1"))
    assert len(store.decisions(limit=99)) == before + 1
    assert store.change("anna", _flag("scam")).flagged_keywords == ("spam", "scam")
    store.close()


def test_the_steps_make_the_tables_that_the_code_uses(database: SqlDatabase) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def _at_step(database: SqlDatabase, step: str) -> None:
    """Makes the tables of that step of the migrations."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with database._engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, step)


def test_an_older_database_is_upgraded_with_what_it_holds(
    database: SqlDatabase, store: GuardrailStore, tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()
    _at_step(database, "0002")
    rows = [("ada", '["spam", "k\u00f6p"]', '["buy now"]'), ("bob", "[]", "[]"), ("eve", "7", "[]")]
    with database._engine.begin() as connection:
        for user, keywords, phrases in rows:
            connection.exec_driver_sql(
                f"INSERT INTO ai_rules VALUES ('{user}', true, false, true, '{keywords}',"
                f" '{phrases}', '[]', '[]', 7, '2026-03-01 00:00:00')"
            )
        connection.exec_driver_sql(
            "INSERT INTO ai_decisions VALUES (0, 'ada', 'm1', 'ignore', 1, '', NULL, 'spam',"
            " '{}', '2026-03-01 00:00:00', 'pre_blocked', 0)"
        )
    ada, bob = store.rules("ada"), store.rules("bob")
    assert ada is not None
    assert bob is not None
    assert (ada.flagged_keywords, ada.flagged_phrases) == (("spam", "köp"), ("buy now",))
    assert (ada.ai_enabled_for_chats, ada.version, bob.flagged_keywords) == (False, 7, ())
    with pytest.raises(RetrievalError, match="rules of eve"):
        store.rules("eve")
    store.record(_decision(message_id="m2", outcome="pre_shadowed"))
    assert [d.message_id for d in store.decisions(limit=9)] == ["m2", "m1"]
    with pytest.raises(RetrievalError, match="refused"):
        store.record(_decision(outcome="unknown"))
    with pytest.raises(RetrievalError, match="refused"):
        store.record(_decision(confidence=2))


def test_rules_written_in_sql_are_valid_and_hold_at_once(store: GuardrailStore) -> None:
    """As silent-errors-and-guardrails.md shows, which names no column of ours."""
    assert store.rules("ada") is None  # the tables are there
    insert = (
        "INSERT INTO ai_rules (user_id, ai_control_enabled, ai_enabled_for_chats,"
        " ai_enabled_for_comments, flagged_keywords, flagged_phrases)"
        " VALUES ('ada', true, true, true, {}, {})"
    )
    store.record(_decision())
    _sql(store, insert, ["spam", "viagra", "scam"], ["buy now", "click here"])
    assert _flagged(store, "spam? Click here") == ["spam", "click here"]
    _sql(store, "UPDATE ai_rules SET flagged_keywords = {}", ["offer"])
    assert _flagged(store, "spam? An offer") == ["offer"]
    _sql(store, "DELETE FROM ai_rules")
    assert _flagged(store, "an offer") == []
    _sql(store, insert, ["casino"], ["buy now"])
    _sql(store, "UPDATE ai_rules SET ai_enabled_for_chats = false")
    active = store.active_rules("ada")
    assert active is not None
    assert active.rules.off_switch("chat") == "ai_enabled_for_chats"
    assert store.change("ada", _flag("spam")).version == 2
    assert _flagged(store, "spam of a casino") == ["spam", "casino"]
    assert store.active_rules("ada") is store.active_rules("ada")
    _sql(store, "INSERT INTO ai_rules (user_id) VALUES ('bob')")
    assert store.rules("bob") == UserRules(user_id="bob", version=1)


def test_rules_are_kept_and_counted(store: GuardrailStore) -> None:
    assert store.rules("ada") is None
    assert store.version("ada") is None
    store.change("ada", _flag("spam", "köp"))
    store.change("ada", _flag("scam"))
    kept = store.rules("ada")
    assert kept is not None
    assert kept.version == 2
    assert kept.flagged_keywords == ("spam", "köp", "scam")
    assert kept.ai_enabled_for_chats
    assert [each.user_id for each in store.all_rules()] == ["ada"]
    assert store.delete("ada")
    assert not store.delete("ada")


def test_changes_at_once_are_all_kept(store: GuardrailStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.change("ada", _flag(f"word{n}")), range(24)))
    kept = store.rules("ada")
    assert kept is not None
    assert len(kept.flagged_keywords) == 24
    assert kept.version == 24


def test_a_decision_is_kept_whole_but_for_a_long_message(store: GuardrailStore) -> None:
    at = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    said = "é" * 700
    store.record(_decision(message_text=said, created_at=at, snapshot_json={"channel": "chat"}))
    [kept] = store.decisions(limit=10)
    assert kept.message_text == "é" * 500
    assert kept.snapshot_json == {"channel": "chat"}
    assert kept.created_at == at
    assert kept.matched_rule == "flagged_keyword:spam"
    assert kept.id is not None


def test_decisions_are_told_apart(store: GuardrailStore) -> None:
    now = datetime.now(UTC)
    store.record(_decision(message_id="old", created_at=now - timedelta(days=3)))
    store.record(_decision(message_id="bob", user_id="bob", decision="escalate"))
    store.record(_decision(message_id="new", created_at=now + timedelta(hours=1)))
    assert [d.message_id for d in store.decisions(limit=9)] == ["new", "bob", "old"]
    assert [d.message_id for d in store.decisions(limit=9, user_id="bob")] == ["bob"]
    assert [d.message_id for d in store.decisions(limit=9, decision="escalate")] == ["bob"]
    assert store.count_since(now - timedelta(hours=1), ("pre_blocked",)) == 2


@pytest.mark.parametrize(
    "wrong", [{"decision": "block"}, {"confidence": 1.5}, {"outcome": "unknown"}]
)
def test_the_database_refuses_what_is_no_decision(
    store: GuardrailStore, tmp_path: Path, wrong: dict[str, object]
) -> None:
    with pytest.raises(RetrievalError, match=r"the decision is in .*refused"):
        store.record(_decision(message_id="m1", **wrong))
    assert store.decisions(limit=1) == []
    kept = json.loads((tmp_path / "outbox.jsonl.refused").read_text())
    assert kept | wrong | {"message_id": "m1"} == kept
    store.record(_decision())  # and stops no other


def test_stats_count_blocks_a_day_by_rule(store: GuardrailStore) -> None:
    night = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)
    morning = night + timedelta(seconds=2)
    store.record(_decision(created_at=night))
    store.record(_decision(created_at=morning))
    store.record(_decision(created_at=morning))
    moderated = {"outcome": "post_blocked", "matched_rule": "openai_moderation"}
    store.record(_decision(created_at=morning, **moderated))
    passed = {"decision": "respond", "outcome": "passed", "matched_rule": None}
    store.record(_decision(created_at=morning, retry_count=2, **passed))
    store.record(_decision(created_at=morning, **passed))
    down = {"outcome": "llm_error", "matched_rule": None, "retry_count": 3}
    store.record(_decision(created_at=morning, **down))
    store.record(_decision(created_at=night - timedelta(days=40)))
    store.record(_decision(created_at=morning, decision="respond", outcome="pre_shadowed"))
    stats = stats_of(store.by_day(7, now=morning), days=7)
    assert stats.blocks == [
        BlocksOfDay("2026-03-01", "flagged_keyword:spam", 1),
        BlocksOfDay("2026-03-02", "flagged_keyword:spam", 2),
        BlocksOfDay("2026-03-02", "openai_moderation", 1),
    ]
    assert (stats.messages, stats.blocked, stats.silent_failures) == (7, 4, 1)
    assert stats.shadowed == 1
    assert stats.retry_rate == 0.5  # two of the four that reached the model


def test_a_message_has_one_row_for_each_outcome(store: GuardrailStore) -> None:
    """A turn that goes on says the same again: what it says last holds."""
    at = datetime(2026, 3, 1, tzinfo=UTC)
    one = {"message_id": "m1", "outcome": "llm_error"}
    store.record(_decision(created_at=at, reason="down", **one))
    store.record(_decision(reason="down again", retry_count=3, **one))
    store.record(_decision(message_id="m1", outcome="passed", decision="respond"))
    store.record(_decision(message_id="m2", outcome="llm_error"))
    assert [(d.message_id, d.outcome) for d in store.decisions(limit=9)] == [
        ("m2", "llm_error"),
        ("m1", "passed"),
        ("m1", "llm_error"),
    ]
    last = store.decisions(limit=9)[-1]
    assert (last.reason, last.retry_count, last.created_at) == ("down again", 3, at)


def test_a_database_of_a_newer_version_is_left_alone(
    database: SqlDatabase, store: GuardrailStore
) -> None:
    with database.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(RetrievalError, match="newer version"):
        store.change("ada", _flag("spam"))


def test_rules_are_read_again_only_after_a_change(store: GuardrailStore) -> None:
    assert store.active_rules("ada") is None
    store.change("ada", _flag("spam"))
    first = store.active_rules("ada")
    assert first is not None
    assert store.active_rules("ada") is first
    store.change("ada", _flag("scam"))
    second = store.active_rules("ada")
    assert second is not None
    assert [m.rule.text for m in second.matcher.matches("a scam")] == ["scam"]
    store.delete("ada")
    assert store.active_rules("ada") is None


def test_another_process_sees_the_rules_at_once(tmp_path: Path) -> None:
    store = open_store(tmp_path, GuardrailSettings())
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from unified_flow.config.tables import GuardrailSettings\n"
        "from unified_flow.guardrails.guardrails import open_store\n"
        "add = lambda r: r.model_copy(update={'flagged_keywords': (*r.flagged_keywords, 'w' + "
        "str(len(r.flagged_keywords)))})\n"
        "store = open_store(Path(sys.argv[1]), GuardrailSettings())\n"
        "for _ in range(5): store.change('ada', add)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [Process(command) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    ready = store.active_rules("ada")
    assert ready is not None
    assert len(ready.rules.flagged_keywords) == 15
    store.close()


def test_the_file_is_private_and_made_only_when_needed(tmp_path: Path) -> None:
    store = open_store(tmp_path, GuardrailSettings())
    assert store.rules("ada") is None
    assert store.decisions(limit=1) == []
    assert list(tmp_path.iterdir()) == []
    store.record(_decision())
    folder = tmp_path / "shared_state"
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert "guardrails.sqlite3" in modes
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    store.close()


def test_a_file_that_is_moved_aside_is_begun_anew(tmp_path: Path) -> None:
    store = open_store(tmp_path, GuardrailSettings())
    store.change("ada", _flag("spam"))
    store.close()
    for file in (tmp_path / "shared_state").iterdir():
        file.unlink()
    assert store.version("ada") is None
    assert store.change("ada", _flag("scam")).version == 1
    store.close()


@pytest.mark.parametrize("empties", [True, False])
def test_a_file_that_is_lost_while_in_use_is_no_absence_of_rules(
    tmp_path: Path, empties: bool
) -> None:
    store = open_store(tmp_path, GuardrailSettings())
    store.change("ada", _flag("spam"))
    assert store.active_rules("ada") is not None
    kept = tmp_path / "copy.sqlite3"
    file = tmp_path / "shared_state" / "guardrails.sqlite3"
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(kept)) as target:
        source.backup(target)
    for each in (tmp_path / "shared_state").glob("guardrails.sqlite3*"):
        each.unlink()
    if empties:
        file.touch()
    with pytest.raises(RetrievalError, match="the rules"):
        store.active_rules("ada")
    kept.rename(file)
    restored = store.active_rules("ada")
    assert restored is not None
    assert restored.rules.flagged_keywords == ("spam",)
    store.close()


def test_an_empty_file_is_no_absence_of_rules_either(tmp_path: Path) -> None:
    (tmp_path / "shared_state").mkdir()
    (tmp_path / "shared_state" / "guardrails.sqlite3").touch()
    with pytest.raises(RetrievalError, match="is empty"):
        open_store(tmp_path, GuardrailSettings()).version("ada")


def test_rules_that_were_deleted_and_made_anew_are_the_new_ones(store: GuardrailStore) -> None:
    store.change("ada", _flag("spam"))
    assert store.active_rules("ada") is not None
    store.delete("ada")
    store.change("ada", _flag("scam"))
    ready = store.active_rules("ada")
    assert ready is not None
    assert [m.rule.text for m in ready.matcher.matches("spam or scam")] == ["scam"]


def test_a_file_that_is_no_database_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "shared_state").mkdir()
    (tmp_path / "shared_state" / "guardrails.sqlite3").write_text("no database at all" * 100)
    with pytest.raises(RetrievalError, match="cannot be used") as caught:
        open_store(tmp_path, GuardrailSettings()).version("ada")
    assert caught.value.hint


def test_rules_that_somebody_spoiled_are_an_error(store: GuardrailStore) -> None:
    store.change("ada", _flag("spam"))
    _sql(store, "UPDATE ai_rules SET flagged_keywords = {}", [""])
    with pytest.raises(RetrievalError, match="rules of ada"):
        store.rules("ada")


def test_words_that_are_no_json_are_an_error_that_says_how_to_write_them(tmp_path: Path) -> None:
    store = open_store(tmp_path, GuardrailSettings())
    store.change("ada", _flag("spam"))
    with store._database.write() as connection:
        connection.exec_driver_sql("UPDATE ai_rules SET flagged_keywords = 'spam, scam'")
    with pytest.raises(RetrievalError, match="holds no JSON") as caught:
        store.active_rules("ada")
    assert caught.value.hint == """mend the row: '["spam", "scam"]' is a list of words"""
    store.close()


def test_rules_of_earlier_versions_are_read(store: GuardrailStore) -> None:
    """They may have an asterisk where it means nothing: it stands between words then."""
    store.change("ada", _flag("spam"))
    _sql(store, "UPDATE ai_rules SET flagged_keywords = {}", ["f*ck", "ab*", "scam!"])
    active = store.active_rules("ada")
    assert active is not None
    found = [active.matcher.matches(text) for text in ("f*ck", "ab", "a scam", "about")]
    assert [[match.rule.text for match in each] for each in found] == [
        *(["f*ck"], ["ab*"], ["scam!"], [])
    ]


def store_at(url: str, folder: Path) -> GuardrailStore:
    database = SqlDatabase.of_variable("RULES_URL", {"RULES_URL": url})
    return GuardrailStore(database, folder / "outbox.jsonl")


def test_turns_do_not_queue_for_a_server_that_is_away(tmp_path: Path) -> None:
    """All knock at once, and once they know, nobody else does for a while."""
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(4) as pool:
        silent.settimeout(20)
        store = store_at(f"postgresql://ada@127.0.0.1:{silent.getsockname()[1]}/rules", tmp_path)
        waiting = [pool.submit(store.version, "ada") for _ in range(4)]
        knocked = [silent.accept()[0] for _ in range(4)]
        assert not any(each.done() for each in waiting)
        for each in knocked:
            each.close()
        assert all(isinstance(each.exception(20), RetrievalError) for each in waiting)
        silent.setblocking(False)
        with pytest.raises(RetrievalError, match="cannot be used"):
            store.version("ada")
        with pytest.raises(BlockingIOError):
            silent.accept()
        with pytest.raises(RetrievalError, match=r"waits in .*outbox\.jsonl"):
            store.record(_decision())


def test_nobody_waits_for_ever_for_a_server_that_hangs(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unified_flow.guardrails.sql_database.ANSWER_S", 0.2)
    with Hanging(postgres_url) as server:
        store = store_at(server.url, tmp_path)
        assert store.change("ada", _flag("spam")).version == 1
        server.hang()
        with pytest.raises(RetrievalError, match="OperationalError"):
            store.version("ada")
        store.close()


def test_a_decision_waits_for_a_database_that_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unified_flow.guardrails.sql_database.LOCKED_S", 0.05)
    rests = CircuitRules(failures=1, open_s=60.0)
    monkeypatch.setattr("unified_flow.guardrails.sql_database._FILE_LOCKED", rests)
    store = open_store(tmp_path, GuardrailSettings())
    store.change("ada", _flag("spam"))
    waiting = tmp_path / "shared_state" / "ai_decisions_waiting.jsonl"

    def waits(number: int) -> None:
        with pytest.raises(RetrievalError, match="is locked; the decision waits") as caught:
            store.record(_decision(message_id=f"m{number}", message_text="é\n\u2028" * 300))
        assert "another program" in str(caught.value.hint)

    with closing(sqlite3.connect(tmp_path / "shared_state" / "guardrails.sqlite3")) as other:
        other.execute("BEGIN IMMEDIATE")
        assert store.version("ada")  # who only reads is not held up
        waits(0)
        assert store.version("ada")
    waits(1)  # for a while nobody asks whether it is still locked, but for a person
    assert store.change("ada", _flag("scam")).version == 2
    store.close()
    store = open_store(tmp_path, GuardrailSettings())
    assert stat.S_IMODE(waiting.stat().st_mode) == 0o600
    left = waiting.read_bytes()
    for _ in range(2):  # the second time as if it had died before the file was empty
        store.record(_decision(message_id="m2"))
        assert waiting.read_bytes() == b""
        waiting.write_bytes(left + b"torn li")
    kept = [each.message_id for each in store.decisions(limit=9)]
    assert sorted(kept) == ["m0", "m1", "m2"]
    store.close()


def test_a_row_that_is_refused_stops_no_other(
    store: GuardrailStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What waits may be of another version, or somebody's hand may have been in the file."""
    waiting, refused = tmp_path / "outbox.jsonl", tmp_path / "outbox.jsonl.refused"
    good = json.loads(json.dumps(asdict(_decision()), default=str)) | {"id": None}
    good.pop("id")
    rows = [
        good | {"message_id": "m1", "outcome": "of a later version"},
        good | {"message_id": "m2"},
        good | {"message_id": "m3", "another column": 1},
        good | {"message_id": "m4", "message_text": {"no": "text"}},
        good | {"message_id": "m5"},
    ]
    lines = [json.dumps(row) for row in rows]
    waiting.write_text("\n".join([*lines, "torn li"]))
    store.record(_decision(message_id="m6"))
    store.record(_decision(message_id="m7"))
    kept = {each.message_id for each in store.decisions(limit=9)}
    assert kept == {"m2", "m5", "m6", "m7"}
    assert waiting.read_bytes() == b""
    set_aside = refused.read_text().splitlines()
    assert {json.loads(line)["message_id"] for line in set_aside[1:]} == {"m1", "m3", "m4"}
    assert set_aside[0] == "torn li"
    assert stat.S_IMODE(refused.stat().st_mode) == 0o600
    assert sum(str(refused) in record.getMessage() for record in caplog.records) == 4


def test_a_disk_that_takes_nothing_is_told_as_the_rest_is(tmp_path: Path) -> None:
    folder = tmp_path / "outbox.jsonl"
    folder.mkdir()
    (folder / "full").touch()
    store = GuardrailStore(SqlDatabase.of_file(tmp_path / "guardrails.sqlite3"), folder)
    with pytest.raises(RetrievalError, match="cannot be used"):
        store.record(_decision())
    assert len(store.decisions(limit=9)) == 1
    (tmp_path / "guardrails.sqlite3").write_bytes(b"")
    with pytest.raises(RetrievalError, match=r"was emptied.* nor can .*outbox\.jsonl take"):
        store.record(_decision())
    store.close()


SECRET = "hunter2-and-more"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ada:{SECRET}@127.0.0.1:1/rules",
        f"postgresql://ada:{SECRET}@/rules?host=/nowhere/at/all",
    ],
)
def test_the_url_is_never_shown(url: str, tmp_path: Path) -> None:
    store = store_at(url, tmp_path)
    with pytest.raises(RetrievalError) as caught:
        store.rules("ada")
    said = f"{caught.value!r} {caught.value.hint} {caught.value.__cause__!r} {store.named}"
    assert "RULES_URL" in said
    assert not any(part in said for part in (SECRET, "127.0.0.1", "nowhere"))
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("url", ["", "mysql://x/y", f"{SECRET}", f"sqlite:///{SECRET}"])
def test_what_is_no_url_is_refused_unseen(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SqlDatabase.of_variable("RULES_URL", {"RULES_URL": url})
    assert SECRET not in f"{caught.value} {caught.value.hint}"
