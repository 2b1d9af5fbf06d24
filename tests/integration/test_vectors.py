"""Search by meaning beside search by words: vectors in the index, a real embeddings server."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import hypot
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from unified_flow.cli.app import app
from unified_flow.config.settings import load
from unified_flow.errors import ConfigError, RetrievalError
from unified_flow.retrieval import store
from unified_flow.retrieval.documents import Documents, open_documents
from unified_flow.retrieval.embedding import Embedder
from unified_flow.retrieval.hybrid_search import joined
from unified_flow.retrieval.qdrant_store import QdrantStore
from unified_flow.retrieval.vector_table import VectorTable

pytestmark = pytest.mark.usefixtures("one_thread")

WEIGHTS = Path(sys.prefix) / "smollm2.gguf"
MEANINGS = (("car", "automobile", "vehicle"), ("bread", "loaf", "dough"), ("rain", "storm"))


class Embeddings:
    """A vector has a place for each meaning: "automobile" is near "car", as models have it."""

    def __init__(self) -> None:
        outer = self
        self.texts: list[str] = []
        self.keys: list[str | None] = []
        self.status = 200
        self.body: bytes | None = None
        self.more = 0  # numbers of each vector
        self.longest = 10_000  # characters of a text
        self.most = 100  # texts of a request

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.keys.append(self.headers["Authorization"])
                outer.texts += asked["input"]
                rows = [
                    {"index": n, "embedding": _vector(text) + [0.0] * outer.more}
                    for n, text in enumerate(asked["input"])
                ]
                body = outer.body or json.dumps({"data": rows[::-1]}).encode()
                status = outer.status
                lengths = [len(text) for text in asked["input"]]
                if max(lengths) > outer.longest or len(lengths) > outer.most:
                    status, body = 500, b"input is too large to process"
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _vector(text: str) -> list[float]:
    found = [float(sum(text.lower().count(word) for word in words)) for words in MEANINGS]
    return [*found, 0.1]


class Qdrant:
    """As much of the server as the client asks for: collections of points, nearest by cosine."""

    def __init__(self) -> None:
        outer = self
        self.collections: dict[str, dict[str, list[float]]] = {}
        self.sizes: dict[str, int] = {}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers["Content-Length"] or 0)
                body = json.loads(self.rfile.read(length) or b"null")
                _, _, name, *rest = self.path.partition("?")[0].split("/")
                result = outer.answer(self.command, name, "/".join(rest), body)
                found = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(found)))
                self.end_headers()
                self.wfile.write(found)

            do_GET = do_PUT = do_POST = answer  # noqa: N815

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, method: str, name: str, asked: str, body: Any) -> Any:
        if asked == "exists":
            return {"exists": name in self.collections}
        if method == "PUT" and not asked:
            self.sizes[name] = body["vectors"]["size"]
            self.collections[name] = {}
            return True
        points = self.collections[name]
        done = {"operation_id": 0, "status": "completed"}
        if asked == "points":
            points |= {each["id"]: each["vector"] for each in body["points"]}
            return done
        if asked == "points/delete":
            for id in body["points"]:
                points.pop(id, None)
            return done
        if asked == "points/scroll":
            return {"points": [{"id": id} for id in points], "next_page_offset": None}
        if asked == "points/query":
            ids = [
                id for each in (body.get("filter") or {}).get("must", []) for id in each["has_id"]
            ]
            near = [
                {"id": id, "version": 0, "score": _cosine(body["query"]["nearest"], vector)}
                for id, vector in points.items()
                if not ids or id in ids
            ]
            return {"points": sorted(near, key=lambda each: -each["score"])[: body["limit"]]}
        vectors = {"vectors": {"size": self.sizes[name], "distance": "Cosine"}}
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "payload_schema": {},
            "config": {"params": vectors, **QDRANT},
        }


def _cosine(one: list[float], other: list[float]) -> float:
    return sum(x * y for x, y in zip(one, other, strict=True)) / (hypot(*one) * hypot(*other))


QDRANT = {
    "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
    "optimizer_config": {
        "deleted_threshold": 0.2,
        "vacuum_min_vector_number": 1000,
        "default_segment_number": 0,
        "flush_interval_sec": 5,
    },
}


@pytest.fixture
def qdrant() -> Iterator[Qdrant]:
    server = Qdrant()
    yield server
    server.server.shutdown()
    server.server.server_close()


def test_a_qdrant_server_finds_what_the_index_s_own_vectors_do(
    home: Path, garage: Path, embeddings: Embeddings, qdrant: Qdrant
) -> None:
    own = documents(home, garage, embeddings)
    expected = [own.search(query, 3) for query in ("my car", "warm loaf")]
    own.close()
    file = home / "unified_flow.toml"
    file.write_text(f'{file.read_text()}qdrant_url = "{qdrant.url}"\n')
    far = open_documents(home, [garage])
    assert [far.search(query, 3) for query in ("my car", "warm loaf")] == expected
    assert len(embeddings.texts) == 3 + 3 + 4, "once for each store, and the questions"
    (garage / "c.md").unlink()
    far.refresh()
    ((_, points),) = qdrant.collections.items()
    assert len(points) == 2
    embeddings.more = 12
    with pytest.raises(RetrievalError, match=r"test-embeddings now gives 16 .* has 4"):
        far.search("car")
    far.close()


@pytest.mark.parametrize("kind", ["table", "qdrant"])
def test_a_store_of_vectors_keeps_them_by_what_was_embedded(
    kind: str, home: Path, garage: Path, embeddings: Embeddings, qdrant: Qdrant
) -> None:
    both = documents(home, garage, embeddings)
    both.refresh()
    path = both.index.path
    vectors = VectorTable(path, "m") if kind == "table" else QdrantStore(qdrant.url, "c", "m")
    one, two, three = (bytes([n]) * 16 for n in range(3))
    assert vectors.cosines([1.0, 0.0], 2, {one}, [one]) == {}
    vectors.add({one: [2.0, 0.0], two: [1.0, 1.0], three: [0.0, 3.0]})
    assert vectors.keys() == {one, two, three}
    near = vectors.cosines([1.0, 0.0], 1, {two, three}, [])
    assert near == {two: pytest.approx(0.7071, abs=1e-4)}
    also = vectors.cosines([1.0, 0.0], 1, {one, two, three}, [three, b"unknown in there"])
    assert also == {one: pytest.approx(1.0), three: pytest.approx(0.0)}
    vectors.remove([one])
    assert vectors.keys() == {two, three}


@pytest.fixture
def embeddings() -> Iterator[Embeddings]:
    server = Embeddings()
    yield server
    server.close()


@pytest.fixture
def garage(tmp_path: Path) -> Path:
    folder = tmp_path / "garage"
    folder.mkdir()
    (folder / "a.md").write_text("# One\n\nAn automobile needs oil every year.\n")
    (folder / "b.md").write_text("# Two\n\nA loaf rises in the warm kitchen.\n")
    (folder / "c.md").write_text("# Three\n\nThe storm took the roof away.\n")
    return folder


def documents(home: Path, garage: Path, embeddings: Embeddings) -> Documents:
    (home / "unified_flow.toml").write_text(
        f'[vectors]\nmodel = "test-embeddings"\nbase_url = "{embeddings.url}"\n'
    )
    return open_documents(home, [garage])


def test_what_shares_no_word_is_found_by_its_meaning(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    both = documents(home, garage, embeddings)
    assert both.index.path  # the index is the same with and without vectors
    first = both.search("my car", 2)[0]
    assert first.path == "garage/a.md"
    assert both.index.search("my car", 2) == [], "no word of it stands anywhere"
    assert 0.5 < first.score <= 1.0, "nothing else is as near"
    by_words = both.index.search("warm loaf", 1)[0]
    assert both.search("warm loaf", 3)[0].chunk_id == by_words.chunk_id, "first in both rankings"
    both.close()


def test_what_search_explains_is_what_a_turn_finds(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    both = documents(home, garage, embeddings)
    for query in ("my car", "warm loaf", "the of"):
        found = both.explain(query, 3)
        assert [hit.passage for hit in found.hits] == both.search(query, 3)
        for hit in found.hits:
            words, meaning = hit.words.value, hit.meaning or 0.0
            assert hit.passage.score == pytest.approx((words + 2 * meaning) / 3, abs=1e-5)
    (why,) = both.explain("my car", 3, why="garage/a.md").why
    assert (why.rank, why.reason) == (1, "it is among the passages shown")
    both.close()
    searched = ["search", "my car", "--home", str(home)]
    outcome = CliRunner().invoke(app, searched)
    assert "by words 0.000, by meaning 0." in outcome.output
    first = json.loads(CliRunner().invoke(app, [*searched, "--json"]).output)["passages"][0]
    assert first["score"] == pytest.approx(2 / 3 * first["meaning"], abs=1e-5)


def test_only_what_is_new_is_embedded_and_what_is_gone_is_forgotten(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    documents(home, garage, embeddings).refresh()
    assert len(embeddings.texts) == 3
    (garage / "b.md").write_text("# Two\n\nThe dough rests.\n")
    (garage / "c.md").unlink()
    again = documents(home, garage, embeddings)
    again.refresh()
    assert [text for text in embeddings.texts[3:]] == ["Two\nThe dough rests."]
    assert [p.path for p in again.search("storm damage", 5)][:1] != ["garage/c.md"]
    assert {p.path for p in again.search("bread", 5)} >= {"garage/b.md"}
    again.close()


def test_a_folder_that_is_left_out_once_keeps_its_vectors(
    home: Path, garage: Path, tmp_path: Path, embeddings: Embeddings
) -> None:
    documents(home, garage, embeddings)
    attic = tmp_path / "attic"
    attic.mkdir()
    (attic / "d.md").write_text("# Four\n\nOld letters lie in a box.\n")
    for roots in ([garage, attic], [garage], [garage, attic]):
        some = open_documents(home, roots)
        some.refresh()
        some.close()
    assert len(embeddings.texts) == 4, "each text once"


def test_two_processes_may_use_one_folder(home: Path, garage: Path, embeddings: Embeddings) -> None:
    one, two = (documents(home, garage, embeddings) for _ in range(2))
    for _ in range(3):
        assert one.search("car", 1)[0].path == two.search("car", 1)[0].path
    (garage / "d.md").write_text("# Four\n\nEvery vehicle has wheels.\n")
    two.refresh()
    assert "garage/d.md" in {p.path for p in one.search("car", 5)}, "seen by the other one too"
    one.close()
    two.close()


@pytest.mark.parametrize(
    ("status", "body", "message", "hint"),
    [
        (500, b"broken", "500 Internal Server Error from .*: broken", "its own log"),
        (503, b"loading", "503 Service Unavailable from .*: loading", "wait"),
        (401, b"no key", "401 Unauthorized", "right environment variable"),
        (404, b"no such model", "404 Not Found from .*: no such model", "no model of this name"),
        (200, b"[]", "does not answer with embeddings", "OpenAI-compatible"),
        (200, b'{"data": []}', "0 vectors for", ""),
    ],
)
def test_a_server_that_fails_is_a_retrieval_error(
    home: Path,
    garage: Path,
    embeddings: Embeddings,
    status: int,
    body: bytes,
    message: str,
    hint: str,
) -> None:
    embeddings.status, embeddings.body = status, body
    with pytest.raises(RetrievalError, match=message) as caught:
        documents(home, garage, embeddings).search("car")
    assert hint in (caught.value.hint or "")


def test_a_text_that_is_too_long_counts_by_its_parts(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    embeddings.most = 1
    documents(home, garage, embeddings).refresh()
    embeddings.longest = 150
    (garage / "d.md").write_text(f"# Four\n\n{'Every vehicle has wheels. ' * 9}\n")
    both = documents(home, garage, embeddings)
    assert "garage/d.md" in [passage.path for passage in both.search("car", 2)]
    embeddings.longest = 10
    (garage / "e.md").write_text("# Five\n\nA storm at sea.\n")
    with pytest.raises(RetrievalError, match=r"test-embeddings cannot be used: 500 .*too large"):
        documents(home, garage, embeddings).refresh()


def test_what_is_down_is_an_intervention_that_says_what_to_start(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    nobody = Embeddings()
    nobody.close()
    unreachable = nobody.url.removesuffix("/v1")
    for base_url, more, message, hint in (
        (nobody.url, "", f"test-embeddings at {nobody.url}", "Start the model server"),
        (embeddings.url, f'qdrant_url = "{unreachable}"', f"vector store {unreachable}", "qdrant_"),
        (
            embeddings.url,
            f'qdrant_url = "{embeddings.url}"',
            "Unexpected Response: 501",
            "is there a Qdrant",
        ),
    ):
        (home / "unified_flow.toml").write_text(
            f'[vectors]\nmodel = "test-embeddings"\nbase_url = "{base_url}"\n{more}\n'
        )
        asked = ["ask", "What needs oil?", "--docs", str(garage), "--home", str(home)]
        outcome = CliRunner().invoke(app, asked)
        assert outcome.exit_code == 1
        assert "retrieval_error" in outcome.output
        assert message in outcome.output
        assert hint in outcome.output.partition("hint:")[2]


def test_a_model_file_that_ends_is_named_and_started_anew() -> None:
    model = Embedder.of_file(WEIGHTS, start_timeout_s=60, timeout_s=60)
    try:
        (vector,) = model.embed(["a car"])
        assert model._local is not None
        pid = model._local.pid
        assert pid is not None
        threading.Timer(0.05, os.kill, (pid, signal.SIGKILL)).start()
        with pytest.raises(RetrievalError, match=r"smollm2\.gguf .*ended with signal 9") as caught:
            model.embed(["word " * 1500] * 100)
        assert "started anew" in str(caught.value.hint)
        assert model.embed(["a car"])[0] == pytest.approx(vector, abs=1e-3)
    finally:
        model.close()


def test_another_file_of_the_same_name_is_another_model(tmp_path: Path) -> None:
    names = set()
    for size in (10, 20):
        path = tmp_path / str(size) / "model.gguf"
        path.parent.mkdir()
        path.write_bytes(b"GGUF" + bytes(size))
        names.add(Embedder.of_file(path, start_timeout_s=1, timeout_s=1).name)
    assert len(names) == 2


@pytest.mark.parametrize(
    ("numbers", "message"),
    [("", "vectors without numbers"), ("NaN, 1.0", "NaN"), ("Infinity, 1.0", "NaN")],
)
def test_vectors_that_are_none_are_the_model_s_fault_and_are_not_kept(
    home: Path, garage: Path, embeddings: Embeddings, numbers: str, message: str
) -> None:
    rows = [f'{{"index": {n}, "embedding": [{numbers}]}}' for n in range(3)]
    embeddings.body = f'{{"data": [{",".join(rows)}]}}'.encode()
    with pytest.raises(RetrievalError, match=f"test-embeddings gave .*{message}") as caught:
        documents(home, garage, embeddings).refresh()
    assert "remove" not in str(caught.value.hint)
    embeddings.body = None
    assert documents(home, garage, embeddings).search("my car", 1)[0].path == "garage/a.md"


def test_vectors_without_an_index_are_in_the_order_of_their_texts(embeddings: Embeddings) -> None:
    texts = ["my car", "warm loaf"]
    rows = [{"embedding": _vector(text)} for text in texts]
    embeddings.body = json.dumps({"data": rows}).encode()
    embedder = Embedder.at(embeddings.url, "m", None, 10.0)
    assert embedder.embed(texts) == [_vector(text) for text in texts]
    embedder.close()


def test_a_model_that_gives_another_size_is_named(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    documents(home, garage, embeddings).refresh()
    embeddings.more = 12
    with pytest.raises(RetrievalError, match=r"test-embeddings now gives 16 .* has 4") as caught:
        documents(home, garage, embeddings).search("car")
    assert "another model" in str(caught.value.hint)
    assert "remove" not in str(caught.value.hint)
    (garage / "d.md").write_text("# Four\n\nEvery vehicle has wheels.\n")
    with pytest.raises(RetrievalError, match=r"now gives 16 .* has 4"):
        documents(home, garage, embeddings).refresh()
    embeddings.more = 0
    assert "garage/d.md" in {p.path for p in documents(home, garage, embeddings).search("car")}


@pytest.mark.parametrize("damage", ["zeroblob(4)", "substr(data, 1, 12) || x'0000803f'"])
def test_a_damaged_vector_is_a_retrieval_error_that_says_what_to_do(
    home: Path, garage: Path, embeddings: Embeddings, damage: str
) -> None:
    whole = documents(home, garage, embeddings)
    whole.refresh()
    with closing(sqlite3.connect(whole.index.path)) as connection, connection:
        connection.execute(f"UPDATE vector SET data = {damage} WHERE rowid = 2")
    with pytest.raises(RetrievalError, match="is broken") as caught:
        documents(home, garage, embeddings).search("car")
    assert "collections delete documents" in str(caught.value.hint)


def test_an_index_that_is_built_anew_keeps_its_vectors(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    documents(home, garage, embeddings).refresh()
    again = documents(home, garage, embeddings)
    again.refresh(rebuild=True)
    assert len(embeddings.texts) == 3
    assert again.search("my car", 1)[0].path == "garage/a.md"


def test_a_read_only_index_is_searched_by_the_vectors_that_it_has(
    home: Path, garage: Path, embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(home, garage, embeddings).refresh()
    monkeypatch.setattr(store, "is_writable", lambda path: False)
    assert documents(home, garage, embeddings).search("my car", 1)[0].path == "garage/a.md"
    file = home / "unified_flow.toml"
    file.write_text(file.read_text().replace("test-embeddings", "another"))
    with pytest.raises(RetrievalError, match="3 passages have no vector of another"):
        open_documents(home, [garage]).search("my car", 1)


def test_the_key_goes_to_the_server_and_nowhere_else(
    home: Path, garage: Path, embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-embedding-key-0123456789")
    documents(home, garage, embeddings).refresh()
    assert set(embeddings.keys) == {"Bearer sk-embedding-key-0123456789"}
    embeddings.status, embeddings.body = 401, b"no"
    with pytest.raises(RetrievalError) as caught:
        documents(home, garage, embeddings).search("car")
    assert "sk-embedding" not in repr(caught.value)
    assert isinstance(caught.value.__cause__, httpx.HTTPStatusError)
    assert "sk-embedding" not in repr(caught.value.__cause__.request.headers.raw)


def test_settings_that_cannot_be_meant_are_refused(home: Path) -> None:
    (home / "unified_flow.toml").write_text('[vectors]\nmodel = "m"\n')
    with pytest.raises(ConfigError, match="no server is named") as caught:
        open_documents(home, [home])
    assert "base_url" in str(caught.value.hint)


def test_one_line_of_settings_is_enough(home: Path, garage: Path, embeddings: Embeddings) -> None:
    file = home / "unified_flow.toml"
    file.write_text(f'base_url = "{embeddings.url}"\nvectors = "test-embeddings"\n')
    assert open_documents(home, [garage]).search("my car", 1)[0].path == "garage/a.md"
    file.write_text('vectors = "smollm2.gguf"\n')
    (home / "smollm2.gguf").symlink_to(WEIGHTS)
    local = open_documents(home, [garage])
    assert len(local.search("my car", 3)) == 3
    local.close()
    assert load(home, vectors="other.gguf").vectors.path == Path("other.gguf").absolute()


SCORES = st.dictionaries(st.integers(0, 9), st.floats(0, 1))


@given(SCORES, SCORES)
def test_what_both_find_better_comes_first(
    words: dict[int, float], meaning: dict[int, float]
) -> None:
    place = {id: (score, -at) for at, (score, id) in enumerate(joined(words, meaning))}
    assert place.keys() == words.keys()
    assert all(0 <= score <= 1 for score, _ in place.values())
    for a in place:
        for b in place:
            if words[a] > words[b] + 1e-9 and meaning.get(a, 0) > meaning.get(b, 0) + 1e-9:
                assert place[a] > place[b]
