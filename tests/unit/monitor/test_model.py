"""What is shown, new, marked and held back, without a screen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from interventions.entry import complete, short_ids
from interventions.errors import QueryError
from interventions.plaintext import fit
from interventions.times import to_text
from monitor.core.model import Sort, TriageModel
from monitor.core.rows import Cell, Column, Row, layout, short_number
from monitor.core.source import Snapshot, Trouble, TroubleKind
from monitor.screens.tabs import OpenTab

NOW = datetime(2026, 3, 14, 15, tzinfo=UTC)


def _entry(number: int, **fields: Any) -> dict[str, Any]:
    moment = to_text(NOW - timedelta(hours=number))
    own = {"id": f"int_1_{number:06}", "created_at": moment, "error_type": f"E{number}"}
    return complete({**own, "fingerprint": f"f{number}", **fields})


def _snapshot(*entries: dict[str, Any], **fields: Any) -> Snapshot:
    return Snapshot(NOW, entries, **fields)


def _shown(model: TriageModel) -> list[str]:
    return [group.first["error_type"] for group in model.groups(NOW)]


def test_what_is_snoozed_comes_last_unless_another_order_is_asked_for() -> None:
    snoozed = _entry(1, severity="critical", snoozed_until=to_text(NOW + timedelta(hours=1)))
    model = TriageModel(_snapshot(snoozed, _entry(2), _entry(3)))
    assert _shown(model) == ["E2", "E3", "E1"]
    model.sort(Sort.LAST)
    assert _shown(model) == ["E1", "E2", "E3"]


def test_while_paused_what_comes_is_counted_and_shown_after() -> None:
    model = TriageModel(_snapshot(_entry(1)))
    model.toggle_pause()
    model.update(_snapshot(_entry(1), _entry(2), _entry(3)))
    assert (_shown(model), model.pending_count) == (["E1"], 2)
    model.toggle_pause()
    assert (_shown(model), model.pending_count) == (["E1", "E2", "E3"], None)


def test_what_came_lately_is_new_until_it_is_closed() -> None:
    model = TriageModel(_snapshot(_entry(0), _entry(1)))
    assert model.new == {"int_1_000000"}
    model.update(_snapshot(_entry(0), _entry(2)))
    assert model.new == {"int_1_000000", "int_1_000002"}
    model.update(_snapshot(_entry(0, resolved_at=to_text(NOW))))
    assert model.new == set()


def test_what_was_read_last_stays_when_nothing_can_be_read() -> None:
    trouble = Trouble(TroubleKind.CORRUPT, "what", "todo")
    model = TriageModel(_snapshot(_entry(1)))
    model.update(_snapshot(trouble=trouble, read_only="why"))
    assert _shown(model) == ["E1"]
    assert (model.snapshot.trouble, model.snapshot.read_only) == (trouble, "why")
    model.update(_snapshot(_entry(2), trouble=trouble))
    assert _shown(model) == ["E2"]


def test_folds_keep_the_order() -> None:
    same = {"fingerprint": "same"}
    model = TriageModel(
        _snapshot(_entry(1, severity="critical"), _entry(2, **same), _entry(3, **same))
    )
    assert _shown(model) == ["E1", "E2"]
    model.sort(Sort.COUNT)
    assert _shown(model) == ["E2", "E1"]
    model.unfolded.add("same")
    assert _shown(model) == ["E2", "E2", "E3", "E1"]
    model.unfolded.clear()
    assert _shown(model) == ["E2", "E1"]


def test_the_worst_is_first_and_then_what_happened_last() -> None:
    model = TriageModel(
        _snapshot(
            _entry(9, error_type="old", last_seen=to_text(NOW)),
            _entry(2, error_type="young"),
            _entry(5, error_type="worst", severity="critical"),
            _entry(1, error_type="limit", type="limit_exceeded"),
        )
    )
    assert _shown(model) == ["worst", "old", "limit", "young"]
    model.sort(Sort.LAST)
    assert _shown(model) == ["old", "limit", "young", "worst"]
    model.sort(Sort.LAST)
    assert _shown(model) == ["limit", "young", "worst", "old"]


def test_a_bad_term_leaves_the_terms_before_it() -> None:
    model = TriageModel(_snapshot(_entry(1), _entry(2)))
    with pytest.raises(QueryError):
        model.filter("E2 sev:x")
    assert _shown(model) == ["E2"]


def test_words() -> None:
    assert [short_number(n) for n in (7, 9999, 10_000, 999_999, 3_400_000)] == [
        *("7", "9999", "10k", "999k", "3M")
    ]
    assert short_ids(_entry(n)["id"] for n in range(7)) == (
        "000000, 000001, 000002, 000003, 000004, and 2 more"
    )
    model = TriageModel(_snapshot(_entry(1, owner="[b]\x1b")))
    (row,) = OpenTab(model).rows(NOW)
    assert ("@[b]\\u001b", "owner") in row.cells[7].badges


def test_columns_fit_the_width() -> None:
    columns = (Column("A", 10, least=4), Column("B", 0), Column("C", 8, from_width=50))
    rows = [Row("k", (Cell("long enough"), Cell("b"), Cell("c")))]
    assert layout(columns, rows, 40, 1).columns == [(0, 10), (1, 29)]
    assert layout(columns, rows, 60, 1).columns == [(0, 10), (1, 40), (2, 8)]
    assert layout(columns, [Row("k", (Cell(""), Cell("b"), Cell("")))], 40, 1).columns == [(1, 40)]
    assert fit("日本語", 4) == "日…" + " "


def test_nothing_is_cut_while_lines_stand_empty() -> None:
    columns = (Column("A", 1), Column("B", 12, least=4), Column("C", 0))
    words = "one two three four five six seven"
    short, long = (Row(text, (Cell(""), Cell("b" * 12), Cell(text))) for text in ("x", words))
    full = layout(columns, [long, short], 30, 2)
    assert (full.texts, full.tops) == ([[words], ["x"]], (0, 1, 2))
    narrow = layout(columns, [long, short], 20, 6)
    assert narrow.columns == [(0, 1), (1, 12), (2, 5)]
    assert narrow.texts == [["", "one two three four", "five six seven"], ["", "x"]]
    assert (narrow.tops, narrow.indent) == ((0, 3, 5), 2)
    spare = layout(columns, [long, short], 30, 3)
    assert spare.texts == [["one two three", "four five six seven"], ["x"]]
