"""`interventions report`: the figures, and a page in which nothing from outside is markup."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time
from typer.testing import CliRunner

from interventions import InterventionQueue, InterventionRequest
from interventions.cli import app
from interventions.health import Window
from interventions.report import as_html, report

NOW = datetime(2026, 3, 14, 15, 9, tzinfo=UTC)
HOSTILE = "</title><script>alert(1)</script>\" onload='x' <img src=x> \x1b[2J\u202e ]]> &amp;"
SECRET = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
runner = CliRunner()


def put(queue: InterventionQueue, hours_ago: float, **fields: Any) -> str:
    moment = NOW - timedelta(hours=hours_ago)
    about: dict[str, Any] = {
        "type": "error",
        "severity": "high",
        "phase": "planner",
        "error_type": "ValueError",
        "error_message": "no plan",
        "session_id": f"s{hours_ago}",
        "turn_id": round(hours_ago * 10),
        "created_at": moment,
    }
    with freeze_time(moment):
        return queue.put(InterventionRequest(**about | fields)).intervention_id or ""


class Page(HTMLParser):
    """What a browser sees of it: elements, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_it_tells_what_blocks_what_and_how_it_was_mended(home: Path) -> None:
    queue = InterventionQueue(home, max_per_session=1)
    first = put(queue, 30)
    with freeze_time(NOW - timedelta(hours=28)):
        queue.close_retried([first], "gave it a plan", outcome="answered", by="ada")
    put(queue, 5, session_id="a")  # it came back
    put(queue, 4, session_id="a", severity="critical", error_type="KeyError")  # merged into it
    put(queue, 3, session_id="b", error_type="OSError", turn_id=0)
    found = report(queue, Window.WEEK, NOW)
    assert found["trends"]["failures"] == 4
    causes = {cause["sample"].partition(":")[0]: cause for cause in found["causes"]}
    assert (
        causes["ValueError"]["fix"] == f"{first[-6:]}: gave it a plan (verified, ada, 2026-03-13)"
    )
    assert [causes[name]["blocks"] for name in ("ValueError", "KeyError", "OSError")] == [1, 1, 0]
    assert causes["KeyError"]["fix"] is None
    assert found["blocked"] == 2

    text = Page(as_html(found)).text
    for told in ("Interventions of home", "gave it a plan (verified", "never resolved", "100%"):
        assert told in text
    assert "4 failures over the last week" in as_html(found)
    assert report(queue, Window.HOUR, NOW)["trends"]["failures"] == 0


@pytest.mark.parametrize("window", Window)
def test_text_from_outside_is_text(home: Path, window: Window) -> None:
    place = home / "<b>home"
    place.mkdir()
    queue = InterventionQueue(place)
    told = {"phase": HOSTILE, "error_type": HOSTILE, "session_id": HOSTILE}
    first = put(queue, 0.5, error_message=f"{HOSTILE} {SECRET}", **told)
    queue.resolve(first, HOSTILE, by=HOSTILE)
    put(queue, 0.4, error_message=f"{HOSTILE} {SECRET}", **told)
    page = as_html(report(queue, window, NOW))
    seen = Page(page)
    assert not {"script", "img", "b", "iframe", "link", "a"} & set(seen.tags)
    assert seen.tags.count("title") == 1 + seen.tags.count("rect") - _bars(seen)
    assert not any(name.startswith("on") or name in ("src", "href") for name, _ in seen.attributes)
    assert seen.text.count("<script>alert(1)</script>") >= 3
    assert not {"\x1b", "\u202e"} & set(page)
    assert "Ab3dEf6h" not in page
    assert "http://" not in page
    assert "https://" not in page


def _bars(seen: Page) -> int:
    """Rectangles of the small bars, which have no title."""
    return sum(1 for name, value in seen.attributes if (name, value) == ("aria-hidden", "true"))


def test_a_queue_in_which_nothing_failed_has_a_report(home: Path) -> None:
    text = Page(as_html(report(InterventionQueue(home), Window.MONTH, NOW))).text
    assert "Nothing failed in the last month" in text


def test_a_label_ends_at_the_right_end_of_its_bar(home: Path) -> None:
    """Begun at the last bar, it would be cut."""
    now = datetime(2026, 11, 23, 9, tzinfo=UTC)
    page = as_html(report(InterventionQueue(home), Window.MONTH, now))
    (end,) = re.findall(r"<text([^>]*)>23 Nov<", page)
    assert 'x="960.0"' in end
    assert 'text-anchor="end"' in end
    assert 'x="807.3"' in re.findall(r"<text([^>]*)>18 Nov<", page)[0]


def test_the_command_writes_a_page_for_its_owner_alone(home: Path) -> None:
    InterventionQueue(home).put(
        InterventionRequest(
            **{"type": "error", "severity": "high", "phase": "nightly", "error_type": "OSError"},
            **{"error_message": "disk full", "session_id": "s", "turn_id": 3},
        )
    )
    target = home / "report.html"
    words = ["report", "--home", str(home)]
    outcome = runner.invoke(app, [*words, "--output", str(target)])
    assert (outcome.exit_code, outcome.stdout) == (0, "")
    assert f"wrote {target}" in outcome.stderr
    assert target.stat().st_mode & 0o777 == 0o600
    assert "OSError: disk full" in Page(target.read_text()).text
    assert runner.invoke(app, words).stdout.startswith("<!doctype html>")

    shown = runner.invoke(app, [*words, "--json", "--window", "day"])
    figures = json.loads(shown.stdout)
    assert (figures["trends"]["window"], figures["trends"]["failures"]) == ("day", 1)
    assert figures["blocked"] == 1

    assert runner.invoke(app, [*words, "--window", "year"]).exit_code == 2
    assert runner.invoke(app, [*words, "--json", "-o", str(target)]).exit_code == 2
    nowhere = runner.invoke(app, [*words, "-o", str(home / "no/report.html")])
    assert (nowhere.exit_code, "cannot write" in nowhere.stderr) == (2, True)
