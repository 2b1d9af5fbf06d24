"""What is remembered of a user: among processes, after a kill, and of nobody else."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import forked
from unified_flow.errors import InputError, RetrievalError
from unified_flow.shared.database import Database
from unified_flow.shared.shared_texts import SharedTexts
from unified_flow.turns.memory import MAX_TEXT, MemoryStore, text_name
from unified_flow.turns.texts import TextFolder

WRITER = """
import sys
from pathlib import Path
from unified_flow.turns.texts import TextFolder
from unified_flow.turns.memory import MemoryStore
store = MemoryStore(TextFolder(Path(sys.argv[1])))
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    store.create("anna", f"{sys.argv[2]} remembers number {number}")
"""


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore(TextFolder(tmp_path / "memory"))


@pytest.fixture(params=["file", "postgres"])
def kept(request: pytest.FixtureRequest, store: MemoryStore) -> Iterator[MemoryStore]:
    """What holds of every place that memories are kept in."""
    if request.param == "file":
        yield store
        return
    with closing(Database(request.getfixturevalue("database_url"), "it")) as database:
        yield MemoryStore(SharedTexts(database, "memory"))


def path_of(store: MemoryStore, user_id: str) -> Path:
    return Path(store.texts.place(text_name(user_id)))


def root_of(store: MemoryStore) -> Path:
    return path_of(store, "anna").parent


def _writer(store: MemoryStore, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(root_of(store)), name, str(count)]
    return forked.Process(command, stdout=subprocess.PIPE, text=True)


def test_what_was_created_is_found_and_listed_with_its_turn(kept: MemoryStore) -> None:
    made = kept.create("anna", "  Works with ROS 2 Humble on Ubuntu ", turn_id=7)
    kept.create("anna", "Prefers short answers")
    assert made.text == "Works with ROS 2 Humble on Ubuntu"
    assert [record.turn_id for record in kept.all("anna")] == [7, None]
    (found,) = kept.search("anna", "which Ubuntu do I use?", limit=5)
    assert found.id == made.id
    assert found.score == pytest.approx(1 / 2)
    assert kept.search("anna", "and what of cooking", limit=5) == []
    assert [memory.text for memory in kept.newest("anna", limit=1)] == ["Prefers short answers"]
    assert kept.counted() == (1, 2)
    assert kept.forget("anna", 7) == [made]
    assert kept.counted() == (1, 1)


def test_users_do_not_see_one_another(kept: MemoryStore) -> None:
    made = kept.create("anna", "Likes tea")
    for other in ("bo", "../anna", "anna/../anna", "Anna ", "å" * 300, ""):
        assert kept.all(other) == []
        assert kept.update(other, made.id, "Likes coffee") is None
        assert kept.delete(other, [made.id]) == []


def test_no_user_has_a_file_elsewhere(store: MemoryStore) -> None:
    for user in ("../anna", "anna/../anna", "å" * 300, ""):
        store.create(user, "Likes tea")
    assert {path.parent for path in root_of(store).parent.rglob("*.jsonl")} == {root_of(store)}


def test_no_two_ids_share_a_file_on_any_disk(store: MemoryStore) -> None:
    digest = path_of(store, "anna@example.org").stem
    names = ["anna@example.org", digest, "anna", "Anna", "ANNA", "å", "\udc80", "a" * 64]
    assert len({str(path_of(store, name)).lower() for name in names}) == len(names)


@given(text=st.text(min_size=1, max_size=60))
def test_whatever_is_created_is_read_back(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = MemoryStore(TextFolder(Path(folder)))
        try:
            made = store.create("anna", text)
        except InputError:
            assert store.all("anna") == []
            return
        assert store.all("anna") == [made]
        assert made.text == text.strip()


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\r"])
def test_an_end_of_a_line_inside_a_memory_harms_no_other(kept: MemoryStore, end: str) -> None:
    kept.create("anna", f"one{end}two")
    kept.create("anna", "Likes tea")
    assert [record.text for record in kept.all("anna")] == [f"one{end}two", "Likes tea"]


def test_half_a_character_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InputError, match="no text"):
        store.create("anna", "half \ud83d of it")


def test_the_same_twice_is_one(kept: MemoryStore) -> None:
    assert kept.create("anna", "Likes tea").id == kept.create("anna", "Likes tea ").id
    assert len(kept.all("anna")) == 1


def test_an_update_keeps_the_id_and_the_place(kept: MemoryStore) -> None:
    first, second = (kept.create("anna", text) for text in ("Likes tea", "Has a dog"))
    changed = kept.update("anna", first.id, "Likes coffee", turn_id=3)
    assert changed is not None
    assert (changed.id, changed.turn_id, changed.created_at) == (first.id, 3, first.created_at)
    assert kept.all("anna") == [changed, second]
    assert kept.update("anna", "m000000", "x") is None
    assert kept.delete("anna", [first.id, "m000000"]) == [changed]
    assert kept.all("anna") == [second]


def test_threads_lose_nothing(kept: MemoryStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: kept.create("anna", f"here number {n}"), range(20)))
    assert len({record.id for record in kept.all("anna")}) == 20


def test_what_is_deleted_is_gone_from_the_disk(store: MemoryStore) -> None:
    made = store.create("anna", "Likes tea")
    assert store.delete("anna", [made.id, "m000000"]) == [made]
    assert "tea" not in path_of(store, "anna").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "my key is sk-proj-abcdefghijklmnopqrstuvwxyz123456",
        "password: hunter2hunter2",
        "use Authorization: Bearer abcdefghijklmnop1234567890",
        "postgres://me:secretsecret@db/x",
        "",
        " \n",
        "x" * (MAX_TEXT + 1),
    ],
)
def test_what_may_not_be_remembered(store: MemoryStore, text: str) -> None:
    with pytest.raises(InputError) as caught:
        store.create("anna", text)
    assert store.all("anna") == []
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


def test_files_are_private(store: MemoryStore) -> None:
    store.create("anna", "Likes tea")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in root_of(store).iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE(root_of(store).stat().st_mode) == 0o700


def test_a_file_by_hand_is_read_and_kept(store: MemoryStore) -> None:
    root_of(store).mkdir()
    path_of(store, "anna").write_text('{"id": "1", "text": "Prefers short answers"}\n\n')
    store.create("anna", "Likes tea")
    assert [record.text for record in store.all("anna")] == ["Prefers short answers", "Likes tea"]


@pytest.mark.parametrize("line", ["{", '{"id": "1"}', "[]", "\x00"])
def test_a_file_that_cannot_be_read_is_an_error_and_stays_as_it_is(
    store: MemoryStore, line: str
) -> None:
    root_of(store).mkdir()
    path_of(store, "anna").write_text(line)
    for attempt in (
        lambda: store.search("anna", "tea", limit=1),
        lambda: store.create("anna", "Likes tea"),
    ):
        with pytest.raises(RetrievalError, match=r"anna\.jsonl"):
            attempt()
    assert path_of(store, "anna").read_text() == line


def test_processes_lose_nothing(store: MemoryStore) -> None:
    writers = [_writer(store, name, 20) for name in ("one", "two", "three")]
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    records = store.all("anna")
    assert len(records) == 60
    assert len({record.id for record in records}) == 60


def test_whoever_is_killed_leaves_a_whole_file(store: MemoryStore) -> None:
    known = 0
    for round_ in range(5):
        writer = _writer(store, f"round {round_}", 100_000)
        assert writer.stdout is not None
        writer.stdout.readline()
        while len(store.all("anna")) < known + 3:  # every read in between is of a whole file
            pass
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        known = len(store.all("anna"))
    assert store.create("anna", "and it goes on").id in {each.id for each in store.all("anna")}


@pytest.mark.parametrize(
    "text",
    [
        "my password is hunter2",
        "My password for the router is Tr0ub4dor&3",
        "The wifi password is Sommar2026!",
        'the password to our VPN is "swordfish"',
        "my api key is abcd1234efgh5678",
        "pin code 4711",
        "The PIN is 4711.",
        "Mitt lösenord är hunter2",
        "Mein Passwort ist geheim12",
        "dass mein Passwort geheim12 ist",
        "Mon mot de passe est azerty",
        "the access token was eyJhbGci",
        "secret: swordfish",
    ],
)
def test_a_secret_as_people_say_it_is_not_kept(text: str, store: MemoryStore) -> None:
    with pytest.raises(InputError, match="seems to hold a secret"):
        store.create("anna", text)
    assert store.all("anna") == []


@pytest.mark.parametrize(
    "text",
    [
        "I keep my passwords in a password manager",
        "The password is stored in the vault",
        "The password is wrong in the manual",
        "The token budget is 500",
        "A token is never shown",
        "The secret of good bread is patience",
        "The key is to be patient",
        "My favourite pin is the red one",
        "I work on the password reset page",
        "dass mein Passwort falsch ist",
    ],
)
def test_what_only_speaks_of_secrets_is_kept(text: str, store: MemoryStore) -> None:
    assert store.create("anna", text).text == text
