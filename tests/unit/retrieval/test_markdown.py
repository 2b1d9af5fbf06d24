import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unified_flow.retrieval.formats.chunk import chunks
from unified_flow.retrieval.formats.document import sections_of


def shown(body: str) -> str:
    """The text of a page with this body, as a reader sees it."""
    return "\n".join(chunk.text for chunk in chunks(sections_of(".md", f"# Page\n\n{body}\n")))


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("See [the *guide*](g.md#a) and [this][ref].\n\n[ref]: x.md", "See the guide and this."),
        ("![A picture](x.png) [![build](b.svg)](ci)", "A picture build"),
        ("Go to <https://x.org> now[^1].\n\n[^1]: Me.", "Go to https://x.org now.\n\n[^1]: Me."),
        ("It is **very __well__** _known_, as `*args` and 2 * 3 * 4 are.",
         "It is very well known, as `*args` and 2 * 3 * 4 are."),
        ("snake_case_name and __init__.py stay, \\*so\\* do `[a](b)`.",
         "snake_case_name and __init__.py stay, *so* do `[a](b)`."),
        ('Press <kbd>Q</kbd>.<br/> <a id="q"></a>List<int> stays.', "Press Q. List<int> stays."),
        ("Call {meth}`Context.invoke` of {class}`~click.Context`, {ref}`see <x>`.",
         "Call Context.invoke() of Context, see."),
        ("(anchor)=\nText.\n{: .lead}\nMore <!-- no -->text.", "Text.\n\nMore text."),
        ('!!! note "Mind"\n    The gap.\n\n    ```sh\n    ls\n    ```\n\nOut.',
         "Mind:\nThe gap.\n\n```sh\nls\n```\n\nOut."),
        ("!!! warning\n    Hot.", "Warning:\nHot."),
        (":::tip[Go on]\nText.\n:::", "Go on:\nText."),
        (":::info\nText.\n:::", "Info:\nText."),
        ("> [!NOTE]\n> Text.", "> Note:\n> Text."),
        ('=== "Linux"\n\n    Text.', "Linux:\n\nText."),
        ("```{note} Title\nText {func}`x` `y`.\n```\n\nAfter.",
         "Note: Title\nText x() `y`.\n\n\nAfter."),
        ("```{toctree}\na\n```\n\nAfter.", "After."),
        ("```{eval-rst}\n.. note:: Text :func:`x`.\n```", "Note: Text x()."),
        ("| A | B |\n| --- | --- |\n| [a](b) | *c* |", "| A | B |\n| --- | --- |\n| a | c |"),
    ],
)  # fmt: skip
def test_text_is_what_a_reader_sees(source: str, seen: str) -> None:
    assert shown(source) == seen


def test_code_is_left_as_it_is() -> None:
    code = "```py\nx = a[b](c) * *d\n\n    <b>_e_</b>\n```"
    directive = "```{code-block} python\n:caption: Start\n\nx = `a`\n```"

    assert shown(f"Text:\n\n{code}") == f"Text:\n\n{code}"
    assert shown(directive).endswith("```python\nx = `a`\n```")


def test_a_link_over_a_line_break_leaves_no_hole_in_its_paragraph() -> None:
    assert shown("Stop it with [any\nsignal](s.md) or [all of them](\nt.md), then\ngo.") == (
        "Stop it with any\nsignal or all of\nthem, then\ngo."
    )


_PIECE = st.sampled_from(
    ["", "", "# T", "text", "- item", "!!! note", "    body", "```", "```{note}", ":::tip", ":::",
     "[a", "b](c)", "**x", "y**", "`z", "{ref}`a", "<b>", "> [!TIP]", "(a)=", "[a]: b", "| a | b |"]
)  # fmt: skip


@given(lines=st.lists(st.one_of(_PIECE, st.text(string.printable, max_size=20)), max_size=30))
def test_every_word_stays_near_its_line(lines: list[str]) -> None:
    source = "\n".join(lines).split("\n")
    for chunk in chunks(sections_of(".md", "\n".join(source))):
        own = chunk.text.split("\n")
        assert chunk.end_line == chunk.line + len(own) - 1 <= len(source)
        for number, text in enumerate(own, chunk.line):
            near = re.sub(r"\W", "", "".join(source[max(0, number - 3) : number + 1])).casefold()
            assert all(w.casefold() in near for w in text.split() if w.isalnum() and len(w) > 3)
