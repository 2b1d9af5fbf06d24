"""The pages name only what is there."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("architecture/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*.md"),
    ]
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
NAMED = re.compile(r"`([\w./-]+)`")
IN_A_PICTURE = re.compile(r"[\w/-]+\.py\b")
PACKAGES = ("unified_flow", "interventions", "monitor")
FOLDERS = (*PACKAGES, "tests", "benchmarks", "docs", "examples", "architecture")
READERS_OWN = {"mytools.py"}
# A path that begins otherwise is somebody else's, or one of a home.
ROOMS = {each.name for package in PACKAGES for each in (ROOT / package).iterdir() if each.is_dir()}
PYTHON_FILES = [path.as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]


def anchors(page: Path) -> set[str]:
    """What GitHub makes of its headings."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def leads(page: Path, link: str, anchor: str) -> bool:
    target = page.parent / link if link else page
    return target.exists() and (not anchor or anchor in anchors(target))


def named(text: str) -> list[str]:
    """What stands in backticks, and the modules in pictures."""
    pictures = "".join(each for each in FENCE.findall(text) if each.startswith("```\n"))
    return NAMED.findall(FENCE.sub("", text)) + IN_A_PICTURE.findall(pictures)


def is_there(name: str) -> bool:
    """A module may be named by the end of its path, a room by its path in its package."""
    if name.endswith(".py"):
        return name in READERS_OWN or any(path.endswith(f"/{name}") for path in PYTHON_FILES)
    if "/" in name and name.partition("/")[0] in {*FOLDERS, *ROOMS}:
        return any((ROOT / package / name).exists() for package in ("", *PACKAGES))
    return True


def test_every_link_and_every_named_file_is_there() -> None:
    missing = []
    for page in PAGES:
        text, where = page.read_text(), page.relative_to(ROOT)
        for link, anchor in LINK.findall(text):
            if not leads(page, link, anchor):
                missing.append(f"{where}: {link}#{anchor}")
        missing += [f"{where}: {name}" for name in named(text) if not is_there(name)]
    assert missing == []


def test_every_package_that_is_required_has_its_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needs = chain(
        project["dependencies"], *(extras[each] for each in extras.keys() - {"dev", "docs"})
    )
    names = {re.split(r"[\[><=]", each)[0].lower().replace("_", "-") for each in needs}
    page = (ROOT / "docs/licences.md").read_text().lower().replace("_", "-")
    missing = [name for name in names if f"| {name} |" not in page]
    assert missing == [], "make licences"


def test_every_benchmark_is_in_their_table() -> None:
    page = (ROOT / "benchmarks/README.md").read_text()
    scripts = [path.name for path in ROOT.glob("benchmarks/*.py")]
    assert [name for name in scripts if f"benchmarks/{name}" not in page] == []
