"""The reference pages of the site, as Markdown, from the code that they describe."""

from __future__ import annotations

from collections.abc import Callable

from from_code.commands import commands
from from_code.errors import error_classes
from from_code.library import events, library
from from_code.schemas import files, http_api
from from_code.settings import settings

PAGES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "settings": settings,
    "http_api": http_api,
    "library": library,
    "events": events,
    "files": files,
    "errors": error_classes,
}
