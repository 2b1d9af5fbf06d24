"""What a reply that is no page becomes: an error that a person can act on."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import httpx

from unified_flow.errors import CaptchaError, PageRefusedError
from unified_flow.retrieval.web.walls import Wall, wall_of
from unified_flow.servers.server_errors import hinted

_OPEN_IT = "Open it in a browser, save the page, and add the file to the documents."


def raise_for_wall(
    asked: str, final: str, status: int, headers: Mapping[str, str], page: str
) -> None:
    """Raises CaptchaError or PageRefusedError for a page that stands before the page."""
    lower = {name.lower(): value for name, value in headers.items()}
    wall = wall_of(asked, final, status, lower, page)
    if wall is not None:
        raise _error(wall, asked, final)


def _error(wall: Wall, asked: str, final: str) -> CaptchaError | PageRefusedError:
    where = asked if asked == final else f"{asked} (at {final})"
    if wall.kind == "captcha":
        return CaptchaError(f"{where} wants to see a person: {wall.why}", url=final, hint=_OPEN_IT)
    if wall.kind == "login":
        return PageRefusedError(f"{where} wants a login: {wall.why}", url=final, hint=_OPEN_IT)
    return PageRefusedError(f"{where} lets no program in: {wall.why}", url=final, hint=_OPEN_IT)


def raise_for_status(url: httpx.URL, status: int) -> None:
    """PageRefusedError, or httpx's own error with the name that was asked, not the address."""
    if 200 <= status < 300:
        return
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "unknown status"
    if status == 403:
        raise PageRefusedError(f"{url} refuses: 403 {phrase}", url=str(url), hint=_OPEN_IT)
    request = httpx.Request("GET", url)
    error = httpx.HTTPStatusError(
        f"{status} {phrase} ({url})",
        request=request,
        response=httpx.Response(status, request=request),
    )
    raise hinted(error, "Is the address right? Open it in a browser." if status < 500 else None)
