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


RUSSIAN = (
    "Аккумулятор ровера работает одиннадцать часов при движении.\n"
    "Паром отправляется от причала каждое утро в семь часов.\n"
)
JAPANESE = "フェリーは毎朝七時に桟橋を出発します。\n切符は門のそばの窓口で売っています。\n"
CHINESE = "货船每天早上七点从码头出发。\n船票在大门旁边的窗口出售，价格为九元。\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (CHINESE, "gb18030"),
        (RUSSIAN, "utf-16-le"),
        (CHINESE, "utf-16-be"),
        ("The ferry leaves at seven.\n", "utf-16-le"),
        (SWEDISH, "cp1252"),
    ],
)
def test_what_can_be_told_apart_is_read_and_said_to_be_guessed(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert (decoded.text, decoded.encoding, decoded.guessed) == (text, encoding, True)


def test_a_comment_in_another_script_among_code() -> None:
    code = "int main() { return load(path, flags); } /* Загрузка конфигурации */\n" * 3
    assert decode(code.encode("cp1251")).text == code


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"text with a \0 in it", "binary"),
        (bytes(range(1, 32)) * 20, "binary"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        (("Пример текста " * 5).encode("cp866"), "unknown encoding"),
        ("många språk är bättre ".encode() + b"\xff", "not valid UTF-8 at byte 26"),
        (codecs.BOM_UTF16_LE + b"\x00\xd8A\x00", "not valid utf-16-le"),
        (b"# coding: utf-8\n" + "Ελλάδα, ΕΛΛΆΔΑ".encode("cp1253") * 20, "unknown encoding"),
        (b"encoding: rot13\n" + b"\xe9\xe8\xff\xfe" * 40, "unknown encoding"),
    ],
)
def test_what_is_no_text_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnusableError, match=reason):
        decode(data)


def test_line_ends_of_other_systems_do_not_move_line_numbers() -> None:
    assert decode(b"a\r\nb\rc\nd\x0ce").text == "a\nb\nc\nd\x0ce"
