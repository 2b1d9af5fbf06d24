from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from interventions import InterventionQueue, QueryError
from interventions.times import parse_duration, short_duration, utc_now
from interventions.view.query import parse


@pytest.fixture
def filled(queue: InterventionQueue, make) -> dict[str, str]:
    old = utc_now() - timedelta(hours=3)
    ids = {
        "critical": make(severity="critical", phase="planner", error_type="TimeoutError"),
        "captcha": make(type="captcha", tool="web.fetch", session_id="abc123", created_at=old),
        "store": make(error_category="retrieval_error", owner="ada", turn_id=77),
        "snoozed": make(error_message="disk is full", phase="save", severity="medium"),
        "resolved": make(error_message="was mended"),
        "dismissed": make(error_message="was noise"),
    }
    names = {key: queue.put(request).intervention_id or "" for key, request in ids.items()}
    queue.snooze(names["snoozed"], duration=timedelta(hours=1))
    queue.resolve(names["resolved"], "new disk")
    queue.dismiss(names["dismissed"])
    return names


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "critical captcha store snoozed"),
        ("is:open", "critical captcha store snoozed"),
        ("is:any", "critical captcha store snoozed resolved dismissed"),
        ("is:resolved", "resolved"),
        ("is:closed", "resolved dismissed"),
        ("is:snoozed", "snoozed"),
        ("-is:snoozed", "critical captcha store"),
        ("is:resolved,dismissed", "resolved dismissed"),
        ("is:regression", ""),
        ("is:assigned", "store"),
        ("sev:critical", "critical"),
        ("sev:crit,med", "critical snoozed"),
        ("severity:critical", "critical"),
        ("phase:plan sev:high", "captcha store"),
        ("type:captcha", "captcha"),
        ("tool:web", "captcha"),
        ("error:timeout", "critical"),
        ("session:ABC", "captcha"),
        ("turn:77", "store"),
        ("category:retrieval", "store"),
        ("owner:ada", "store"),
        ("prio:P2", "captcha"),
        ("prio:<=2", "critical captcha store"),
        ("age:>1h", "captcha"),
        ("age:<30m", "critical store snoozed"),
        ("age:1h30m", "captcha"),
        ("count:>1", ""),
        ("disk", "snoozed"),
        ('"disk is full"', "snoozed"),
        ('"is full disk"', ""),
        ('"', "critical captcha store snoozed"),
        ("disk -phase:save", ""),
        ("mended is:any", "resolved"),
    ],
)
def test_what_a_query_finds(
    queue: InterventionQueue, filled: dict[str, str], query: str, expected: str
) -> None:
    found = parse(query).select(list(queue.entries()), utc_now())
    by_id = {name: key for key, name in filled.items()}
    assert [by_id[entry["id"]] for entry in found] == expected.split()


def test_by_id_and_fingerprint(queue: InterventionQueue, filled: dict[str, str]) -> None:
    entry = queue.find(filled["store"])
    short = entry["id"].rsplit("_", 1)[-1]
    for query in (f"id:{short}", f"id:{entry['id']}", f"fp:{entry['fingerprint'][:8]}"):
        assert parse(query).select(list(queue.entries()), utc_now()) == [entry]


@pytest.mark.parametrize(
    "query", ["sev:purple", "is:odd", "age:>soon", "count:many", "prio:x", "type:bug", "sev:"]
)
def test_a_value_that_cannot_be_meant_is_refused_with_a_hint(query: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(query)
    assert caught.value.hint


def test_a_mistyped_key_is_not_silently_text() -> None:
    with pytest.raises(QueryError) as caught:
        parse("sevv:critical")
    assert "sev:" in caught.value.hint


@pytest.mark.parametrize("text", ["TypeError:", "https://x.org/a", "C:\\temp", "::", "a:b:c"])
def test_colons_in_plain_text_are_text(queue: InterventionQueue, make, text: str) -> None:
    said = queue.put(make(error_message=f"it said {text} twice"))
    queue.put(make(error_message="something else"))
    found = parse(text).select(list(queue.entries()), utc_now())
    assert [entry["id"] for entry in found] == [said.intervention_id]


def test_an_unknown_key_is_said_to_be_text() -> None:
    assert parse("foo:bar").remarks == ("foo: is no term, so 'foo:bar' is looked for as text",)
    assert parse('"sev=critical" status=500').remarks == ()
    assert parse('"foo:bar" https://x.org/a TypeError: turn:7').remarks == ()


@pytest.mark.parametrize(
    "query", ["sev:critical --exit-code", "--json", "turn:seven", "sev=critical", "-error_type=X"]
)
def test_an_option_or_a_word_for_a_number_is_refused(query: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(query)
    assert caught.value.hint
    assert parse('"--json"').tests


def test_durations() -> None:
    assert parse_duration("1h30m") == timedelta(hours=1, minutes=30)
    assert parse_duration("1.5d") == timedelta(hours=36)
    # The last is a long s, which a pattern that ignores case takes for an s.
    assert [parse_duration(text) for text in ("", "1", "h", "1h x", "-1h", "5ſ")] == [None] * 6
    assert [short_duration(timedelta(seconds=s)) for s in (-5, 12, 300, 3 * 3600, 2 * 86400)] == [
        "0s",
        "12s",
        "5m",
        "3h",
        "2d",
    ]
    # Never more than the four characters that the lists have for it.
    assert [short_duration(timedelta(days=d)) for d in (999, 1000, 365_000)] == [
        "999d",
        "2y",
        "999y",
    ]


def test_a_regression_is_found(queue: InterventionQueue, make) -> None:
    name = queue.put(make(error_type="E", error_message="again")).intervention_id
    queue.resolve(name, "x")
    back = queue.put(make(error_type="E", error_message="again")).intervention_id
    (entry,) = parse("is:regression").select(list(queue.entries()), datetime.now(UTC))
    assert entry["id"] == back
