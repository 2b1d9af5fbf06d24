"""Writes docs/licences.md, what each package that we require is licensed under: make licences

It reads the metadata of what is installed, in an environment that has every extra.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OURS = "unified-flow"
FOR_DEVELOPERS = {"dev", "docs"}
PAGE = Path(__file__).with_name("licences.md")
HEAD = """\
# Licences

unified-flow is under the [MIT licence](../LICENSE). It ships no code of others: it requires these
packages, directly or through each other. Their licences are what their own metadata states, in the
versions of `constraints.txt`, on Linux. `make licences` writes this page.

| package | licence | comes with |
|---|---|---|
"""


def main() -> None:
    needed_by: dict[str, set[str]] = defaultdict(set)
    for extra in ("", *sorted(distribution(OURS).metadata.get_all("Provides-Extra") or [])):
        if extra not in FOR_DEVELOPERS:
            for name in required(OURS, frozenset({extra})):
                needed_by[name].add(extra)
    rows = [row(distribution(name), extras) for name, extras in sorted(needed_by.items())]
    PAGE.write_text(HEAD + "".join(rows), encoding="utf-8")
    print(f"{PAGE}: {len(rows)} packages")


def required(name: str, extras: frozenset[str]) -> Iterator[str]:
    """Every package below that one, each once."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(name, extras)]
    while waiting:
        package, chosen = waiting.pop()
        for text in distribution(package).requires or []:
            wanted = Requirement(text)
            marker = wanted.marker
            if marker and not any(marker.evaluate({"extra": each}) for each in chosen or {""}):
                continue
            found = canonicalize_name(wanted.name), frozenset(wanted.extras | {""})
            if found not in seen:
                seen.add(found)
                waiting.append(found)
    yield from {package for package, _ in seen} - {name}


def row(package: Distribution, extras: set[str]) -> str:
    named = ", ".join(f"`{each}`" for each in sorted(extras))
    comes_with = "unified-flow" if "" in extras else named
    return f"| {package.metadata['Name']} | {licence(package)} | {comes_with} |\n"


def licence(package: Distribution) -> str:
    """The SPDX expression, else the short name, else what its classifiers say."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    named = str(metadata.get("License") or "")
    if named and len(named) < 60 and named != "UNKNOWN":
        return named.replace("|", "/")
    found = [each for each in metadata.get_all("Classifier") or [] if each.startswith("License ::")]
    if not found:
        raise SystemExit(f"{metadata['Name']} states no licence: look, and say it here")
    return ", ".join(each.rpartition(" :: ")[2] for each in found)


if __name__ == "__main__":
    main()
