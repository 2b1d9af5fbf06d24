import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unified_flow.lib.text import sentences
from unified_flow.retrieval.formats.chunk import chunks
from unified_flow.retrieval.formats.document import sections_of

TITLE = "Page\n====\n\n"


def shown(body: str, extension: str = ".rst") -> str:
    """The text of a page with this body, as a reader sees it."""
    return "\n".join(chunk.text for chunk in chunks(sections_of(extension, TITLE + body + "\n")))


def test_a_role_that_begins_a_line_belongs_to_its_sentence() -> None:
    text = shown("The frobnicator is started by the\n:class:`ZorkRunner`. It\nstops by itself.")

    assert [text[start:end] for start, end in sentences(text)] == [
        "The frobnicator is started by the\nZorkRunner.",
        "It\nstops by itself.",
    ]


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("Call :func:`~zork.lib.start` first.", "Call start() first."),
        ("Call :meth:`.Zork.start(now)` or :py:meth:`!stop`.", "Call Zork.start(now) or stop()."),
        ("See :ref:`the guide <zork-guide>`.", "See the guide."),
        ("See :ref:`zork-guide` and :doc:`/topics/zork`.", "See zork guide and topics/zork."),
        ("As :pep:`8` and :rfc:`9110` say.", "As PEP 8 and RFC 9110 say."),
        ("Set ``ZORK_PATH=*`` before.", "Set `ZORK_PATH=*` before."),
        ("Use ``x`` and ``y`` or ``z``.", "Use `x` and `y` or `z`."),
        ("It is *very* **well known**.", "It is very well known."),
        ("Pass ``*args`` and 2 * 3 * 4.", "Pass `*args` and 2 * 3 * 4."),
        ("Read `the manual <https://x.org/m>`_ or `<https://x.org>`__.",
         "Read the manual or https://x.org."),
        ("Escaped\\ s and \\*stars\\*.", "Escapeds and *stars*."),
        ("Known [1]_ and told [#]_ twice.", "Known [1] and told  twice."),
        ("Version |release| of |name|.\n\n.. |name| replace:: Zork", "Version release of Zork."),
        ("A Zork_ and a plain_ name.\n\n.. _Zork: https://x.org", "A Zork and a plain_ name."),
        (".. note:: A Zork_.\n\n   .. _zork: https://x.org", "Note: A Zork."),
        ("Snake_case and __init__ stay.", "Snake_case and __init__ stay."),
    ],
)  # fmt: skip
def test_marks_in_a_line_are_gone(source: str, seen: str) -> None:
    assert shown(source) == seen


def test_a_page_that_only_names_what_is_generated_holds_no_text() -> None:
    page = "==========\n zork.lib\n==========\n\n.. automodule:: zork.lib\n   :members:\n"
    assert not list(chunks(sections_of(".rst", page)))


def test_a_page_of_nothing_but_headings_is_found_by_each() -> None:
    page = "# Buy apples\n# Buy pears\n# Call Zorkman\n"
    (chunk,) = chunks(sections_of(".md", page))
    assert chunk.text == page.strip()


def test_a_link_over_a_line_break_leaves_no_hole_in_its_paragraph() -> None:
    text = "It may be stopped with `any signal\n<https://x.org/signal>`_, which\nis safe."

    assert shown(text) == "It may be stopped with any\nsignal, which\nis safe."


def test_a_label_in_the_document_is_read_as_the_title_it_stands_for() -> None:
    body = "See :ref:`zork-a`.\n\n.. _zork-a:\n\nThe *first* part\n----------------\n\nText.\n"

    assert shown(body) == "See The first part.\nText."


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        (".. note:: Be careful.", "Note: Be careful."),
        ("Text.\n\n.. note::", "Text."),
        (".. warning::\n\n    Be careful.\n\n    Always.", "Warning:\nBe careful.\n\nAlways."),
        (".. versionadded:: 3.1", "Added in version 3.1."),
        (".. versionchanged:: 3.1\n   It zorks.", "Changed in version 3.1:\nIt zorks."),
        (".. deprecated:: 2.0 Use :func:`x`.", "Deprecated since version 2.0: Use x()."),
        (".. admonition:: What now?\n   :class: tip\n\n   This.", "What now?\n\n\nThis."),
        (".. method:: Zork.start(now)\n\n   Starts it.", "Zork.start(now)\n\nStarts it."),
        (".. list-table:: Zorks\n   :header-rows: 1\n\n   * - A\n     - B",
         "Zorks\n\n\n- A\n  - B"),
        (":param int now: When.\n:returns: A zork.", "int now: When.\nreturns: A zork."),
        ("Said [1]_.\n\n.. [1] By *me*.", "Said [1].\n\n[1] By me."),
    ],
)  # fmt: skip
def test_directives_say_what_a_reader_sees(source: str, seen: str) -> None:
    assert shown(source) == seen


@pytest.mark.parametrize(
    "hidden",
    [
        ".. graphviz::\n\n   digraph { SECRET -> b }",
        ".. toctree::\n   :maxdepth: 2\n\n   SECRET\n   b",
        ".. raw:: html\n\n   <b>SECRET</b>",
        ".. a comment, SECRET\n   of two lines",
        ".. _SECRET:",
        ".. _SECRET: https://x.org",
        "__ https://SECRET.org",
        ".. index:: SECRET",
        ".. |SECRET| image:: x.png",
        ".. setting:: SECRET",
        ".. code-block:: python\n   :caption: SECRET\n\n   x = 1",
        "=======  =======\nA        B\n=======  =======",
    ],
)
def test_what_a_reader_does_not_see_is_not_read(hidden: str) -> None:
    text = shown(f"Before.\n\n{hidden}\n\nAfter.")

    assert not any(mark in text for mark in ("SECRET", "==", ".. "))
    assert text.startswith("Before.")
    assert text.endswith("After.")


def test_an_entry_of_a_reference_is_a_section() -> None:
    body = """\
Before.

.. class:: Zork(now)

   A zork.

   .. method:: start(wait=True)

      Starts it.

   .. attribute:: state

      Where it is.

After."""
    found = chunks(
        sections_of(
            ".rst", TITLE + body + "\n\nstop()\n------\n\n.. function:: stop(x)\n\n   Ends."
        )
    )

    assert [(each.heading, each.text) for each in found] == [
        ("Page", "Before."),
        ("Page > Zork", "Zork(now)\n\nA zork."),
        ("Page > Zork > start()", "start(wait=True)\n\nStarts it."),
        ("Page > Zork > state", "state\n\nWhere it is."),
        ("Page", "After."),
        ("Page > stop()", "stop(x)\n\nEnds."),
    ]


def test_code_stays_code_and_keeps_its_indentation() -> None:
    body = """\
Start it like this::

    def main():
        zork(*args, **kwargs)

        return `x`

- In an item:

  .. code-block:: console
     :linenos:

     $ zork --now

>>> zork_
1

Done."""

    assert (
        shown(body)
        == """\
Start it like this:
```
def main():
    zork(*args, **kwargs)

    return `x`
```
- In an item:



  ```console
  $ zork --now
  ```
>>> zork_
1

Done."""
    )


def test_tables_are_rows_without_rules() -> None:
    simple = "=====  ======\nA      B\n=====  ======\n1      *two*\n=====  ======"
    grid = "+---+-----+\n| A | B   |\n+===+=====+\n| 1 | *2* |\n+---+-----+"

    assert shown(simple) == "| A | B |\n| --- | --- |\n| 1 | two |"
    assert shown(grid) == "| A | B |\n| --- | --- |\n| 1 | 2 |"


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("Zork\n====\n\nUse\n---\n\nText.\n", {"Zork > Use"}),
        ("Zork\n====\n\nText with ``code``.\n", {"Zork"}),
        ("Zork\n====\n\nText.\n\n.. note:: This.\n", {"Zork"}),
        ("====\nZork\n====\n\nText.\n", {"Zork"}),
        ("Dear reader\n-----\n\nThis is a letter.\n", {""}),
        ("Some `words` and *stars*, and a line:\n\n.. or two\n", {""}),
    ],
)
def test_plain_text_is_restructured_only_on_strong_evidence(text: str, headings: set[str]) -> None:
    assert {chunk.heading for chunk in chunks(sections_of(".txt", text))} == headings


_PIECE = st.sampled_from(
    ["", "", "Title", "=====", "-----", "text", "  text", "- item", ".. note::", ".. _x:", "..",
     "   :option: x", "A line::", "    code", ">>> x", "+--+--+", "| a | b |", "==  ==", "a   b",
     ":ref:`a", "<b>`_ and", "``x``", "*a* |b|", "__ x", ".. |a| replace:: b", ".. code-block:: c"]
)  # fmt: skip


@given(lines=st.lists(st.one_of(_PIECE, st.text(string.printable, max_size=20)), max_size=30))
def test_every_word_stays_near_its_line(lines: list[str]) -> None:
    source = "\n".join(lines).split("\n")
    for chunk in chunks(sections_of(".rst", "\n".join(source))):
        own = chunk.text.split("\n")
        assert chunk.end_line == chunk.line + len(own) - 1 <= len(source)
        for number, text in enumerate(own, chunk.line):
            near = re.sub(r"\W", "", "".join(source[max(0, number - 3) : number + 1])).casefold()
            assert all(w.casefold() in near for w in text.split() if w.isalnum() and len(w) > 3)


def test_code_at_the_end_of_an_entry_is_closed_there() -> None:
    body = """\
.. class:: Zork

   .. method:: start()

      Starts it::

         zork.start()

   .. method:: stop()

      Stops it."""
    found = chunks(sections_of(".rst", TITLE + body))

    assert [each.text for each in found] == [
        "Zork",
        "start()\n\nStarts it:\n```\nzork.start()\n```",
        "stop()\n\nStops it.",
    ]
