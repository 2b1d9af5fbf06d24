"""The site, built from the pages of the whole repository: sphinx-build -c docs . FOLDER

Nothing is fetched, and every warning is an error, a link that leads nowhere among them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

from from_code import PAGES  # noqa: E402

project = "unified-flow"
extensions = ["myst_parser"]
include_patterns = [
    "docs/*.md",
    "docs/*/*.md",
    "architecture/*.md",
    "architecture/*/*.md",
    "examples/*.md",
    "benchmarks/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = [".*", "tests", "clients", "site"]
root_doc = "docs/index"
html_theme = "furo"
html_title = "unified-flow"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
myst_heading_anchors = 4
myst_enable_extensions = ["strikethrough"]
pygments_style = "default"
smartquotes = False  # they make one dash of the two of an option
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
REDIRECT = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">\n'
FROM_CODE = re.compile(r"<!-- from code: (\w+) -->")
README = "<!-- README -->"


def setup(app: Sphinx) -> None:
    app.connect("source-read", fill)
    app.connect("build-finished", add_top)


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put what the code says into a reference page, and the README into the first one."""
    text = FROM_CODE.sub(lambda found: PAGES[found[1]](), source[0])
    if README in text:
        text = text.replace(README, below((ROOT / "README.md").read_text(encoding="utf-8")))
    source[0] = text


def below(readme: str) -> str:
    """The README with links as they lead from docs/, and its picture as the theme wants it."""
    readme = re.sub(r"<picture>.*?</picture>", _themed, readme, flags=re.DOTALL)
    return re.sub(r"\]\((?!https?:|#)(?:docs/)?", _one_up, readme)


def _one_up(found: re.Match[str]) -> str:
    return "](" if found[0].endswith("docs/") else "](../"


def _themed(found: re.Match[str]) -> str:
    """Both pictures: the theme that a reader has chosen shows one of them."""
    alt = re.search(r'alt="(.*?)"', found[0])
    sources = re.findall(r'src(?:set)?="docs/(.*?)"', found[0])
    assert alt
    return "\n\n".join(
        f"```{{image}} {source}\n:class: only-{theme}\n:alt: {alt[1]}\n```"
        for theme, source in zip(("dark", "light"), sources, strict=True)
    )


def add_top(app: Sphinx, error: Exception | None) -> None:
    """At the top of the site: the way to its first page, and llms.txt."""
    if error is None:
        top = Path(app.outdir)
        (top / "index.html").write_text(REDIRECT, encoding="utf-8")
        (top / "llms.txt").write_text(llms_text(app), encoding="utf-8")


def llms_text(app: Sphinx) -> str:
    """The form of llmstxt.org: what this is, then a line for each page."""
    title, summary = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")[:2]
    lines = [f"{title}\n\n> {' '.join(summary.split())}\n"]
    for section, prefix in SECTIONS.items():
        names = [name for name in sorted(app.env.found_docs) if name.startswith(prefix)]
        lines.append(f"\n## {section}\n")
        lines += [f"- [{app.env.titles[name].astext()}]({name}.html)" for name in names]
    return "\n".join(lines) + "\n"


SECTIONS = {
    "Tutorial": "docs/tutorial",
    "How to": "docs/how-to/",
    "Reference": "docs/reference/",
    "How it works": "architecture/",
}
