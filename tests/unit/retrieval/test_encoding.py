import codecs

import pytest

from unified_flow.lib.sandbox import UnusableError
from unified_flow.retrieval.formats.encoding import decode

SWEDISH = "Åtgärden är känd på många språk, så läs vidare här.\n"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (SWEDISH.encode(), "utf-8"),
        (codecs.BOM_UTF8 + SWEDISH.encode(), "utf-8"),
        (codecs.BOM_UTF16_LE + SWEDISH.encode("utf-16-le"), "utf-16-le"),
        (codecs.BOM_UTF16_BE + SWEDISH.encode("utf-16-be"), "utf-16-be"),
        (codecs.BOM_UTF32_LE + SWEDISH.encode("utf-32-le"), "utf-32-le"),
    ],
)
def test_unicode_with_and_without_a_mark(data: bytes, encoding: str) -> None:
    decoded = decode(data)

    assert (decoded.text, decoded.encoding, decoded.guessed) == (SWEDISH, encoding, False)


def test_a_declared_encoding_is_used() -> None:
    page = '<meta charset="iso-8859-5"><p>Привет, мир</p>'
    assert decode(page.encode("iso-8859-5")).text == page
    source = "# -*- coding: latin-1 -*-\nname = 'Zoë'\n"
    assert decode(source.encode("latin-1")).text == source


def test_western_text_without_a_declaration_is_guessed_and_said_to_be() -> None:
    decoded = decode((SWEDISH + "“quoted” – €5").encode("cp1252"))

    assert "“quoted” – €5" in decoded.text
    assert (decoded.encoding, decoded.guessed) == ("cp1252", True)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"text with a \0 in it", "binary"),
        (bytes(range(1, 32)) * 20, "binary"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        ("日本語の文書です。".encode("shift_jis") * 5, "unknown encoding"),
        ("många språk är bättre ".encode() + b"\xff", "not valid UTF-8 at byte 26"),
        (codecs.BOM_UTF16_LE + b"\x00\xd8A\x00", "not valid utf-16-le"),
        (b"# coding: utf-8\n" + "日本".encode("euc-jp") * 20, "unknown encoding"),
        (b"encoding: rot13\n" + b"\xe9\xe8\xff\xfe" * 40, "unknown encoding"),
    ],
)
def test_what_is_no_text_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnusableError, match=reason):
        decode(data)


def test_line_ends_of_other_systems_do_not_move_line_numbers() -> None:
    assert decode(b"a\r\nb\rc\nd\x0ce").text == "a\nb\nc\nd\x0ce"
