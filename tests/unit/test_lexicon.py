"""The files of the languages: each is whole, a fault is named, and a fifth is one more file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import unified_flow
from unified_flow.lib.text.lexicon import Lexicon, languages, lexicon_of, read_lexicon

GERMAN = r"""
stop_words = "der die das ein eine und in an auf von zu mit ist war wurde wird wer wann es er sie"
verbs = "ist war wurde wird hat"
asks.person = '\bwer\b'
asks.time = '\bwann\b'
answers.time = '\b1\d{3}\b'
pronouns = "er es sie"
determiners = "der die das ein eine"
greeting = '^\W*guten (?:Tag|Morgen)\W*$'
list_files = '\bwelche\b.*\bDateien\b'
files = 'Dateien'
result_of = 'wie viel ist'
signs = { "*" = 'mal' }
phrases.nearest = "Am nächsten kommt:"
phrases.nothing = "Die Dokumente enthalten keine Antwort."
phrases.nothing_for = "Die Dokumente enthalten keine Antwort auf: {question}"
phrases.remembered = "Gemerkt:"
phrases.nothing_remembered = "Nichts."
phrases.cannot_remember = "Das geht nicht."
phrases.cannot_read = "Das auch nicht."
phrases.not_allowed = "{tool} durfte nicht."
phrases.no_reply = "{tool} antwortete nicht."
phrases.no_secrets = "Kein Geheimnis."
phrases.no_documents = "Keine Dokumente."
phrases.greeting = "Guten Tag."
phrases.thanks = "Gern."
phrases.lines = "Aus {source}:"
phrases.no_matches = "Keine Zeile: {pattern}."
phrases.matches = "Zeilen: {pattern}:"
phrases.no_files = "Keine Datei: {pattern}."
phrases.files = "Dateien zu {pattern}:"
phrases.unclear_reference = "Worauf bezieht sich „{reference}“?"
phrases.no_content = "Was?"
phrases.which_one = "{noun}: {names}?"
phrases.other_language = "Die Dokumente sind in {languages}."
phrases.unread = "Nicht gelesen:"
"""
ASK = """
import asyncio, json, sys
from unified_flow.flow import UnifiedFlow

async def main(home, docs, *questions):
    async with UnifiedFlow.from_config(home, docs=[docs]) as flow:
        turns = [await flow.process("s", question) for question in questions]
    print(json.dumps([turn.response or turn.clarification_question for turn in turns]))

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_fifth_language_is_one_more_file(tmp_path: Path) -> None:
    source, packages = Path(unified_flow.__file__).parent, tmp_path / "packages"
    packages.mkdir()
    for place in ("", "lib", "lib/text", "lib/text/languages"):
        folder = packages / source.name / place
        folder.unlink(missing_ok=True)
        folder.mkdir()
        for each in (source / place).iterdir():
            (folder / each.name).symlink_to(each)
    german = folder / "de.toml"
    german.unlink()  # a link: what is written must not be written into the product
    german.write_text(GERMAN, encoding="utf-8")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "turm.txt").write_text(
        "Der Leuchtturm am Kap wurde 1871 von Clara Voss gebaut.\n"
        "Der Hafen am Kap wurde 1902 von Otto Falk gebaut.\n",
        encoding="utf-8",
    )
    questions = [
        "Guten Tag!",
        "Wer baute die Brücke von Lima?",
        "Wann wurde der Leuchtturm gebaut?",
        "Wann wurde er gebaut?",
        "Welche .txt Dateien gibt es?",
        "Wie viel ist 3 mal 4?",
    ]
    asked = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path / "home"), str(docs), *questions],
        cwd=tmp_path,  # the interpreter finds the folder that it starts in first
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=True,
    )
    hello, nothing, tower, again, files, product = json.loads(asked.stdout)
    assert hello == "Guten Tag."
    assert nothing == "Die Dokumente enthalten keine Antwort."
    assert "1871" in tower.splitlines()[2]
    assert again == tower
    assert "turm.txt" in files
    assert "= 12" in product


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("pronouns = it they", "line 1"),
        ('pronuons = "it they"', "pronuons: Extra inputs are not permitted"),
        ("greeting = '(hej'", r"greeting: .*not a regular expression.*unterminated"),
        ("asks.person = '(who'", "asks.person: .*not a regular expression"),
        ("asks.whom = 'who'", "asks.whom.*Input should be .person."),
        ("call = 'use|(call'", "call: .*not a regular expression"),
        ("verbs = 3", "verbs: "),
        ('phrases.nearest = "Near:"', "phrases.nothing: Field required"),
    ],
)
def test_a_fault_is_named_with_its_file_and_key(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "xx.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"xx\.toml: .*{fault}"):
        read_lexicon(path)


@pytest.mark.parametrize("language", ["en", "de", "fr", "sv", "zh"])
def test_every_language_asks_answers_and_speaks(language: str) -> None:
    lexicon = lexicon_of(language)
    assert language in languages()
    assert lexicon.language == language
    assert {"person", "time", "place", "number", "reason"} <= {kind for kind, _ in lexicon.kinds}
    assert lexicon.answers
    assert lexicon.phrases


def test_english_has_every_alternative_that_patterns_are_made_of() -> None:
    made_of = {name for name, field in Lexicon.model_fields.items() if field.default == ""}
    assert {name for name in made_of if not getattr(lexicon_of("en"), name)} == set()
