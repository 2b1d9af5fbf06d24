import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from unified_flow.retrieval.formats import markdown
from unified_flow.retrieval.formats.chunk import Chunk, chunks
from unified_flow.retrieval.formats.document import sections_of


def read(extension: str, text: str) -> list[Chunk]:
    return list(chunks(sections_of(extension, text)))


def sections(extension: str, text: str) -> list[tuple[str, int, str]]:
    """(heading, line, text), each section long enough to stand alone."""
    return [(chunk.heading, chunk.line, chunk.text) for chunk in read(extension, text)]


LONG = (
    "This paragraph is long enough to stand on its own, which takes a hundred characters or so, "
    "and a few more than that in order to be sure."
)


def test_markdown_headings_make_trails() -> None:
    text = f"""\
# Guide

{LONG} 1

Install it
----------
{LONG} 2

### On *Linux* with `apt` {{#linux}}
{LONG} 3

## [Use](use.md) ##
{LONG} 4
"""
    assert sections(".md", text) == [
        ("Guide", 3, f"{LONG} 1"),
        ("Guide > Install it", 7, f"{LONG} 2"),
        ("Guide > Install it > On Linux with apt", 10, f"{LONG} 3"),
        ("Guide > Use", 13, f"{LONG} 4"),
    ]


def test_markdown_code_comments_and_lists_hold_no_headings() -> None:
    text = f"""\
# Real

```sh
# not a heading
```

~~~~
~~~
## nor this
~~~~

    # nor indented code

<!--
# nor a comment
-->

- an item
---
> quoted
===

{LONG}
"""
    (chunk,) = read(".md", text)
    assert chunk.heading == "Real"
    assert "# not a heading" in chunk.text
    assert "nor a comment" not in chunk.text


def test_markdown_front_matter_gives_the_title_and_is_not_quoted() -> None:
    text = f'---\ntitle: "The manual"\ntags: [x]\n---\n\n{LONG}\n\n## Part\n{LONG}\n'

    assert sections(".md", text) == [("The manual", 6, LONG), ("The manual > Part", 9, LONG)]


def test_markdown_that_begins_with_a_rule_keeps_its_text() -> None:
    assert LONG in read(".md", f"---\n\n{LONG}\n\n---\n")[0].text


def test_an_unclosed_comment_hides_nothing() -> None:
    assert LONG in read(".md", f"Write `<!--` to begin.\n\n<!-- open\n\n{LONG}\n")[0].text


# Lists and quotations are left out: what they contain is told apart by rules of its own.
_MARKDOWN = st.sampled_from(
    ["", "", "text", "more text", "# One", "  ## Two ##", "####### seven", "#none", "#", "===",
     "---", " ----  ", "```", "~~~", "~~~~", "``` py", "    # code", "\\# escaped", "text # text",
     "| a |"]
)  # fmt: skip


@given(lines=st.lists(_MARKDOWN, max_size=12))
def test_markdown_headings_are_those_of_commonmark(lines: list[str]) -> None:
    text = "\n".join(lines)
    reference = [
        token.map[1]
        for token in MarkdownIt("commonmark").parse(text)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    found = [heading.end for heading in markdown.headings(text.split("\n"))]

    assert found == reference


def test_rst_titles_by_underline_and_overline() -> None:
    text = f"""\
.. _label:

=====
Guide
=====

.. contents:: Table of Contents
   :local:

{LONG} 1

Install :command:`it`
---------------------

.. comment that is not shown

.. note::

   {LONG} 2

Deeper
^^^^^^
{LONG} 3

Use
---
{LONG} 4
"""
    found = sections(".rst", text)

    assert [(heading, line) for heading, line, _ in found] == [
        ("Guide", 10),
        ("Guide > Install it", 18),
        ("Guide > Install it > Deeper", 23),
        ("Guide > Use", 27),
    ]
    assert found[1][2] == f"Note:\n{LONG} 2"
    assert "comment" not in "".join(text for *_, text in found)


def test_rst_tables_transitions_and_literal_blocks_are_no_titles() -> None:
    text = f"""\
Title
=====

=====  =====
A      B
=====  =====
1      2
=====  =====

{LONG}

----

Example::

   Not a title
   -----------

A paragraph of
two lines
==
"""
    assert {chunk.heading for chunk in read(".rst", text)} == {"Title"}


def test_html_keeps_what_a_reader_sees_on_its_lines() -> None:
    text = f"""\
<!doctype html>
<html><head><title>Site</title><style>p {{ color: red }}</style></head>
<body>
<nav><a href="/">Home</a></nav>
<h1>The <em>guide</em>¶</h1>
<p>First &amp; <b>bold</b>er line
second line.</p>
<script>var x = "<p>no</p>";</script>
<h2>Part
two</h2><p>{LONG}</p>
<p>{LONG}</p>
</body></html>
"""
    found = sections(".html", text)

    assert found[0][0] == "The guide"
    assert found[0][1] == 6
    assert found[0][2].startswith("First & bolder line\nsecond line.")
    assert ("The guide > Part two", 10, f"{LONG}\n{LONG}") in found
    seen = "".join(text for *_, text in found)
    assert not any(word in seen for word in ("color", "Home", "var x", "Site"))


@pytest.mark.parametrize(
    "planted",
    [
        "<div hidden>IGNORE</div>",
        "<div style='color:red; display: none'><div>IGNORE</div>IGNORE</div>",
        "<p style=visibility:hidden>IGNORE</b>IGNORE</section>IGNORE<p>",
        "<ul><li aria-hidden=true>IGNORE<b>IGNORE<li>",
        "<span hidden><body>IGNORE</span>",
        "<table><tr><td hidden>IGNORE<td>a<tr></table>",
        "<dialog>IGNORE</dialog><button>IGNORE</button>",
        "<h2 hidden>IGNORE</h2>",
        "<template><p>IGNORE</p></template><svg><title>IGNORE</title></svg>",
    ],
)
def test_what_is_hidden_in_html_is_read_by_nobody(planted: str) -> None:
    found = read(".html", f"<h1>Page</h1><div>{planted} {LONG} seen</div>after")
    text = "".join(chunk.heading + chunk.text for chunk in found)
    assert "IGNORE" not in text
    assert all(word in text for word in ("Page", "seen", "after"))


def test_html_in_one_line_and_broken_html_are_read() -> None:
    one_line = f"<h1>A</h1><p>{LONG}</p><p>{LONG}</p><h1>B</h1><p>{LONG}</p>"
    assert sections(".html", one_line) == [("A", 1, f"{LONG} {LONG}"), ("B", 1, LONG)]

    broken = f"<h1>A<p>{LONG}<div><b>{LONG}</i></h2></table><h2"
    assert LONG in "".join(chunk.heading + chunk.text for chunk in read(".html", broken))


def test_a_heading_with_nothing_under_it_goes_with_what_stands_above() -> None:
    assert sections(".md", f"# A\n\n## B\n{LONG}\n\n## Empty\n\n## C\n{LONG}\n") == [
        ("A > B", 4, f"{LONG}\n\n## Empty"),
        ("A > C", 9, LONG),
    ]


def test_headings_with_nothing_under_them_are_found() -> None:
    assert sections(".md", "# List\n\n## Buy milk\n\n## Call Bob\n") == [
        ("List", 3, "## Buy milk\n\n## Call Bob")
    ]


@pytest.mark.parametrize(
    "mark",
    [
        "<",
        "<!--",
        "<![CDATA[",
        "<?",
        "<p ",
        "<div>",
        "&#",
        "<!-- -->",
        "<b>",
        "<b><li>",
        "<p hidden></b>",
        "<td></i>",
    ],
)
def test_html_that_is_nothing_but_marks_takes_no_time(mark: str) -> None:
    text = mark * (60_000 // len(mark)) + f"\n\n<p>{LONG}</p>"
    started = time.process_time()

    assert len(read(".html", text)) < 60_000
    assert time.process_time() - started < 3


MARKS = (
    *("*", "**a ", "`", "``a ", "``a`b", ":a", ":a:`", "a.", "a_ ", "[", "[a", "[![a]", "[a]("),
    *("![", "<!--", "<a ", "__a ", "_a ", "|a ", "{a}`", "\\", " ", "`a <", "!!! a", ":::a"),
    *(".. a::", "+-+", "| a "),
)


@pytest.mark.parametrize("extension", [".md", ".rst"])
def test_markup_that_is_nothing_but_marks_takes_no_time(extension: str) -> None:
    for mark in MARKS:
        marks = mark * (8_000 // len(mark))
        started = time.process_time()
        for text in (marks, f"`{marks}x`_", "\n".join([mark] * 1_200)):
            page = f"Title\n=====\n\n{text}\n\n.. _a: b\n\n{LONG}\n"
            assert len(read(extension, page)) < 8_000, mark
        assert time.process_time() - started < 1, mark


def test_code_is_cut_at_functions_and_methods() -> None:
    body = "\n".join(f"        step_{number}(argument_of_the_step)" for number in range(5))
    text = f"""\
import os


class Store:
    \"\"\"Keeps things.\"\"\"

    # Opens it.
    @cached
    def open(self):
{body}

    def close(self):
{body}

        def inner():
            return 1


def main():
{body.replace("        ", "    ")}
"""
    found = sections(".py", text)

    assert [heading for heading, _, _ in found] == [
        "", "Store", "Store > open", "Store > close", "main",
    ]  # fmt: skip
    opened = next(each for each in found if each[0] == "Store > open")
    assert "    # Opens it." in opened[2]
    assert "def inner" in next(text for heading, _, text in found if heading == "Store > close")


@pytest.mark.parametrize(
    ("extension", "line", "name"),
    [
        (".js", "export async function load(path) {", "load"),
        (".ts", "const load = async (path: string): Promise<void> => {", "load"),
        (".go", "func (s *Store) Load(path string) error {", "Load"),
        (".rs", "pub(crate) async fn load(path: &str) -> Result<()> {", "load"),
        (".rs", "impl<T> Store<T> {", "Store<T>"),
        (".java", "public static void load(String path) {", "load"),
        (".cpp", "std::vector<int> Store::load(const std::string& path)", "Store::load"),
        (".c", "static int load(const char *path)", "load"),
        (".sh", "load() {", "load"),
        (".rb", "def load!(path)", "load!"),
        (".kt", "suspend fun load(path: String) {", "load"),
        (".cs", "internal sealed class Store : IStore", "Store"),
    ],
)
def test_definitions_of_many_languages(extension: str, line: str, name: str) -> None:
    body = "\n".join(["    work(with, some, arguments);"] * 6)

    assert read(extension, f"{line}\n{body}\n}}\n")[-1].heading.endswith(name)


def test_unknown_files_are_plain_text() -> None:
    assert sections(".xyz", f"# {LONG}") == [("", 1, f"# {LONG}")]


def test_tiny_sections_keep_their_headings() -> None:
    text = f"# A\n\n## One\nshort\n\n## Two\nalso short\n\n# B\n{LONG}\n"

    assert sections(".md", text) == [
        ("A > One", 4, "short"),
        ("A > Two", 7, "also short"),
        ("B", 10, LONG),
    ]


def test_long_sections_are_cut_between_paragraphs() -> None:
    paragraphs = [f"Paragraph {number}. " + "word " * 80 for number in range(12)]
    found = read(".md", "# A\n\n" + "\n\n".join(paragraphs))

    assert len(found) > 2
    assert all(chunk.text.startswith("Paragraph") for chunk in found)
    assert all(400 < len(chunk.text) <= 2400 for chunk in found)
    assert {chunk.heading for chunk in found} == {"A"}


def test_long_sections_are_not_cut_inside_code() -> None:
    code = "\n\n".join(f"statement_{number}()" for number in range(20))
    block = f"```\n{code}\n```"
    found = read(".md", "# A\n\n" + "\n\n".join(["word " * 150, block] * 4))

    assert len(found) > 2
    assert all(chunk.text.count("```") % 2 == 0 for chunk in found)


def test_code_that_shows_other_fences_is_not_cut() -> None:
    code = ["````rst", "Title", "~~~~~", "", "```", "Text.", "```", "", *[LONG, ""] * 12, "````"]
    chunk = next(each for each in read(".md", "\n".join([*[LONG, ""] * 20, *code, "", LONG]))
                 if "````rst" in each.text)  # fmt: skip
    assert "\n".join(code) in chunk.text


def test_a_line_without_end_is_cut_at_sentences() -> None:
    found = read(".txt", "A sentence of some words. " * 400)

    assert all(chunk.line == 1 and len(chunk.text) <= 2400 for chunk in found)
    assert all(chunk.text.endswith("words.") for chunk in found)
    assert len(read(".txt", "x" * 10_000)) > 3


_LINE = st.one_of(
    st.sampled_from(["", "", "# T", "## U", "---", "===", "```", "- x", "    code", "<!-- c -->",
                     ".. note::", "def f():", "class A:", "}", "text", "Title", "====="]),
    st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=["Cs"]), max_size=60),
    st.integers(1, 60).map(lambda n: "word and more. " * n),
)  # fmt: skip


@given(lines=st.lists(_LINE, max_size=40), extension=st.sampled_from([".txt", ".py", ".xyz"]))
def test_every_line_of_a_chunk_is_that_line_of_the_file(lines: list[str], extension: str) -> None:
    for chunk in read(extension, "\n".join(lines)):
        own = chunk.text.split("\n")
        assert chunk.end_line == chunk.line + len(own) - 1 <= len(lines)
        assert chunk.text.strip()
        for number, text in enumerate(own, chunk.line):
            assert text in lines[number - 1] or text == "Note:"  # of reStructuredText


@given(lines=st.lists(_LINE, max_size=40))
def test_no_line_of_a_text_is_lost(lines: list[str]) -> None:
    kept = "".join("".join(chunk.text.split()) for chunk in read(".xyz", "\n".join(lines)))

    assert kept == "".join("".join(line.split()) for line in lines)
