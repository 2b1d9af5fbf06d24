"""Text from outside is shown as it is, and takes the columns that are counted for it."""

from __future__ import annotations

import json

import pytest

from interventions.plaintext import cells, clean, one_line


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff", "\u202e", "\U000e0041", "\x1b"])
def test_what_nobody_sees_is_shown(unseen: str) -> None:
    shown = clean(f"a{unseen}b")
    assert shown.isascii()
    assert shown != "ab"
    assert json.loads(f'"{shown}"') == f"a{unseen}b"


def test_words_keep_what_joins_their_letters() -> None:
    persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert one_line(persian) == persian


def test_emoji_in_a_row_are_as_wide_for_every_terminal() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert one_line(family) == "\U0001f468\U0001f469\U0001f467"
    assert cells(one_line(family)) == 6
    assert one_line("\u2764\ufe0f!") == "\u2764!"
