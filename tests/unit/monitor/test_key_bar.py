"""What stands at the bottom where there is no room for all keys."""

from __future__ import annotations

from monitor.widgets.key_bar import KeyHint, fitting


def _hint(name: str) -> KeyHint:
    return KeyHint(((name[0], name[0]),), name, enabled=True)


WANTED = [_hint(name) for name in ("detail", "resolve", "snooze", "filter")]
ALWAYS = [_hint("help"), _hint("quit")]


def _names(width: int, rows: int) -> list[list[str]]:
    return [[hint.label for hint in line] for line in fitting(WANTED, ALWAYS, width, rows)]


def test_all_of_them_in_one_row_where_there_is_room() -> None:
    assert _names(80, 2) == [["detail", "resolve", "snooze", "filter", "help", "quit"]]


def test_the_last_are_left_out_and_never_help_and_quit() -> None:
    assert _names(34, 1) == [["detail", "resolve", "help", "quit"]]
    assert _names(8, 1) == [["help", "quit"]]


def test_a_second_row_takes_what_the_first_has_no_room_for() -> None:
    assert _names(28, 2) == [["detail", "resolve", "snooze"], ["filter", "help", "quit"]]
