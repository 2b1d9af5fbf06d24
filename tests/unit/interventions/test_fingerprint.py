from __future__ import annotations

import pytest

from interventions.admission.preparation import fingerprint, normalise, prepare


@pytest.mark.parametrize(
    ("message", "normal"),
    [
        ("mail to bob@example.com bounced", "mail to <email> bounced"),
        ("GET https://x.org/a?b=1 failed", "GET <url> failed"),
        ("cannot reach db.internal:5432", "cannot reach <host>"),
        ("refused by 10.0.0.17:8080", "refused by <ip>"),
        ("trace 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "trace <traceid>"),
        ("row 123e4567-e89b-12d3-a456-426614174000 gone", "row <uuid> gone"),
        ("commit da39a3ee5e6b4b0d3255bfef95601890afd80709", "commit <sha>"),
        ("since 2026-01-04T10:30:00Z", "since <date>"),
        ("timed out after 12.5s", "timed out after <duration>"),
        ("at 0x7f3a", "at <hex>"),
        ("score 0.25 too low", "score <float> too low"),
        ("line 42, column 7", "line <int>, column <int>"),
        ("no tool 'doc.serch'", "no tool 'doc.serch'"),
        ("name='bob' is taken", "name=<str> is taken"),
    ],
)
def test_what_differs_each_time_is_replaced(message: str, normal: str) -> None:
    assert normalise(message) == normal


BASE = {
    "phase": "planner",
    "tool": None,
    "error_type": "ReadTimeout",
    "exception_type": "httpx.ReadTimeout",
    "error_message": "no answer from 10.0.0.1 in 3.1s",
    "culprit": "flow.client:ask",
}


def test_the_same_failure_has_the_same_fingerprint() -> None:
    again = {**BASE, "error_message": "no answer from 10.0.0.2 in 2.9s"}
    assert fingerprint(BASE) == fingerprint(again)


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "synthesis"},
        {"tool": "doc.search"},
        {"exception_type": "httpx.ConnectTimeout"},
        {"error_message": "another thing"},
        {"culprit": "flow.client:embed"},
    ],
)
def test_each_part_makes_another_failure(change: dict[str, str]) -> None:
    assert fingerprint(BASE) != fingerprint({**BASE, **change})


def test_a_moved_line_is_the_same_failure(queue, tmp_path) -> None:
    from interventions import InterventionRequest

    prints = []
    for blank_lines in (0, 7):
        scope: dict[str, object] = {"__name__": "app.work"}
        source = "\n" * blank_lines + "def work():\n    return {}['missing']\n"
        exec(compile(source, str(tmp_path / "work.py"), "exec"), scope)
        try:
            scope["work"]()  # type: ignore[operator]
        except KeyError as error:
            request = InterventionRequest.from_exception(error, phase="x", session_id="s")
            prints.append((prepare(request)["fingerprint"], request.culprit))
    assert prints[0] == prints[1]
    assert prints[0][1] == "app.work:work"
