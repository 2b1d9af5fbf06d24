"""Search by meaning beside search by words: a real Qdrant folder, a real embeddings server."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from unified_flow.cli.app import app
from unified_flow.errors import ConfigError, RetrievalError
from unified_flow.retrieval import vector_store
from unified_flow.retrieval.documents import Documents, open_documents
from unified_flow.retrieval.embedding import HttpEmbedder, LocalEmbedder
from unified_flow.retrieval.explanation import Ranks
from unified_flow.retrieval.hybrid_search import fused

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
    assert first.score == 0.0, "the score is that of the words"
    by_words = both.index.search("warm loaf", 1)[0]
    assert both.search("warm loaf", 3)[0] == by_words, "first in both rankings"
    both.close()


def test_what_search_explains_is_what_a_turn_finds(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    both = documents(home, garage, embeddings)
    for query in ("my car", "warm loaf", "the of"):
        found = both.explain(query, 3)
        ids = [hit.passage.chunk_id for hit in found.hits]
        assert ids == [passage.chunk_id for passage in both.search(query, 3)]
    (first, *_) = both.explain("warm loaf", 3).hits
    assert first.ranks == Ranks(words=1, meaning=1)
    (first, *_) = both.explain("my car", 3).hits
    assert first.ranks == Ranks(words=None, meaning=1)
    both.close()
    outcome = CliRunner().invoke(app, ["search", "my car", "--home", str(home)])
    assert "rank by words -, by meaning 1" in outcome.output


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
        (500, b"broken", "status 500: 'broken'", "mend the server"),
        (503, b"loading", "status 503: 'loading'", "mend the server"),
        (401, b"no key", "status 401", "api_key_env"),
        (404, b"no such model", "status 404: 'no such model'", "mend model"),
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


def test_a_text_that_is_too_long_is_named_and_what_is_long_together_goes_alone(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    embeddings.most = 1
    documents(home, garage, embeddings).refresh()
    embeddings.longest = 60
    (garage / "d.md").write_text(f"# Four\n\n{'Every vehicle has wheels. ' * 9}\n")
    with pytest.raises(RetrievalError, match=r"garage/d\.md:3 has no vector .*too large") as caught:
        documents(home, garage, embeddings).refresh()
    assert ".gitignore" in str(caught.value.hint)


def test_what_is_down_is_an_intervention_that_says_what_to_start(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    nobody = Embeddings()
    nobody.close()
    unreachable = nobody.url.removesuffix("/v1")
    for base_url, more, message, hint in (
        (nobody.url, "", f"embedding server {nobody.url}/embeddings", "base_url"),
        (embeddings.url, f'qdrant_url = "{unreachable}"', f"vector store {unreachable}", "qdrant_"),
        (embeddings.url, f'qdrant_url = "{embeddings.url}"', "status 501", "is there a Qdrant"),
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


def test_a_folder_that_another_process_keeps_is_a_retrieval_error(
    home: Path, garage: Path, embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(home, garage, embeddings).refresh()
    monkeypatch.setattr(vector_store, "LOCK_WAIT_S", 0.1)
    # A lock is of the file as it was opened, so it makes no difference which process has it.
    with (home / "shared_state" / "index" / "vectors.lock").open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RetrievalError, match="in use by another process") as caught:
            documents(home, garage, embeddings).search("car")
    assert "qdrant_url" in str(caught.value.hint)
    assert documents(home, garage, embeddings).search("my car", 1)[0].path == "garage/a.md"


def test_a_model_file_that_ends_is_named_and_started_anew() -> None:
    model = LocalEmbedder(WEIGHTS, start_timeout_s=60, timeout_s=60)
    try:
        (vector,) = model.embed(["a car"])
        pid = model.pid
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
        names.add(LocalEmbedder(path, start_timeout_s=1, timeout_s=1).name)
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
    embedder = HttpEmbedder(embeddings.url, "m", None, 10.0)
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


def test_a_damaged_store_is_a_retrieval_error_that_says_what_to_do(
    home: Path, garage: Path, embeddings: Embeddings
) -> None:
    whole = documents(home, garage, embeddings)
    whole.refresh()
    meta = home / "shared_state" / "index" / "vectors" / "meta.json"
    meta.write_text("{")
    with pytest.raises(RetrievalError, match="cannot be used") as caught:
        whole.search("car")
    assert "remove" in str(caught.value.hint)


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
    assert caught.value.__cause__ is None


def test_settings_that_cannot_be_meant_are_refused(home: Path) -> None:
    (home / "unified_flow.toml").write_text('[vectors]\nmodel = "m"\n')
    with pytest.raises(ConfigError, match="base_url"):
        open_documents(home, [home])


def test_middling_places_in_both_rankings_are_worth_more_than_the_first_of_one() -> None:
    words = [*range(10), 99]
    meaning = [*range(20, 30), 99]
    assert fused([words, meaning])[0][1] == 99


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=3))
def test_fusion_keeps_what_all_rankings_agree_on(rankings: list[list[int]]) -> None:
    scores = dict((key, score) for score, key in fused(rankings))
    assert set(scores) == set(range(6))
    assert all(0 < score <= 1 for score in scores.values())
    for a in range(6):
        for b in range(6):
            if all(ranking.index(a) < ranking.index(b) for ranking in rankings):
                assert scores[a] > scores[b]
