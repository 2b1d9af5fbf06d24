"""The settings, from their models."""

from __future__ import annotations

from collections.abc import Iterator

from from_code.markdown import cell, fields_of, plain, table, value_text
from unified_flow.config.settings_reference import every_setting


def settings() -> str:
    def sections() -> Iterator[str]:
        shown: str | None = None
        rows: list[tuple[str, str, str]] = []
        for known in every_setting():
            if known.named is not None:
                continue
            above = ".".join(known.path[:-1])
            if above != shown and rows:
                yield _section(shown, rows)
                rows = []
            shown = above
            rows.append(
                (f"`{known.path[-1]}`", f"`{value_text(known.default)}`", cell(known.description))
            )
        yield _section(shown, rows)
        for known in every_setting():
            if known.named is not None:
                yield f"## [{known.key}.NAME]\n\n{plain(known.description)}"
                yield fields_of(known.named)

    return "\n\n".join(sections())


def _section(name: str | None, rows: list[tuple[str, str, str]]) -> str:
    head = f"## [{name}]" if name else "## At the top of the file"
    return f"{head}\n\n{table(('setting', 'default', 'meaning'), rows)}"
