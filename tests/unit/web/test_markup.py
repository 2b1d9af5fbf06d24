"""A page of the web as text: the page itself, as a reader sees it."""

from __future__ import annotations

from unified_flow.retrieval.formats.document import lines_of
from unified_flow.retrieval.formats.html import html_sections

WORDS = "Enough words to be a page of its own, and then some more of them. " * 5


def text(body: str) -> str:
    return "\n".join(lines_of([*html_sections(f"<html><body>{body}</body></html>".encode())]))


def test_headings_lists_tables_and_code() -> None:
    page = (
        "<h1>One<a class=headerlink href=#x>¶</a></h1><p>With <b>bold</b>, <i>slant</i> and "
        "<a href=/x>a link</a>.<h2>Two</h2><ul><li>first<li>second</ul>"
        "<table><tr><th>a<th>b<tr><td>1<td>2</table><pre><code>x = 1\n\n    y = 2</code></pre>"
    )
    assert text(page) == (
        "# One\n\nWith bold, slant and a link.\n\n## Two\n\n- first\n- second\n\n"
        "| a | b\n| 1 | 2\n\n```\nx = 1\n\n    y = 2\n```\n"
    )


def test_what_stands_around_the_page_is_left_out() -> None:
    page = (
        "<header>Shop</header><nav>Home</nav><aside>Adverts</aside>"
        f"<main><h1>One</h1><p>{WORDS}</p><aside>A note of the page itself</aside></main>"
        "<footer>Imprint</footer>"
    )
    found = text(page)
    assert "A note of the page itself" in found
    assert not any(word in found for word in ("Shop", "Home", "Adverts", "Imprint"))


def test_a_page_without_a_main_part() -> None:
    page = f"<header><h1>One</h1></header><div>{WORDS}</div><footer>Imprint</footer>"
    found = text(page)
    assert found.startswith("# One")
    assert "Enough words" in found
    assert "Imprint" not in found


def test_a_main_part_that_is_empty_is_not_the_page() -> None:
    assert "Enough words" in text(f"<main></main><div>{WORDS}</div>")
    assert "Enough words" in text(f"<article>short</article><article>{WORDS}</article>")


def test_what_is_hidden_is_not_read() -> None:
    page = (
        f"<p>{WORDS}</p><p hidden>one</p><p style='color:red; display : none'>two</p>"
        "<p aria-hidden=true>three<b hidden>four</b></p><template>five</template>"
        "<p style=visibility:hidden>six</p><!-- seven -->"
    )
    found = text(page)
    assert not any(f"{word}\n" in found for word in ("one", "two", "three", "four", "five", "six"))
    assert "seven" not in found


def test_a_body_that_a_script_is_to_show() -> None:
    page = f"<html><body style='visibility:hidden'><p>{WORDS}</p></body></html>"
    assert "Enough words" in next(html_sections(page.encode())).lines[0]


def test_no_page_at_all() -> None:
    assert list(html_sections(b"")) == []


def test_the_cells_of_a_row_stand_in_one_line() -> None:
    row = "<tr>\n<td><p>one</p></td>\n<td><p>two</p></td>\n</tr>\n"
    assert "| one | two |\n| one | two |" in text(f"<table>\n{row}{row}</table>")
