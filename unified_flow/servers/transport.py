"""httpx's own transport errors, saying which server was asked.

"All connection attempts failed" helps nobody who has two servers. The error stays of its type,
so that whoever sorts errors by type need not know this module.
"""

from __future__ import annotations

from typing import TypeVar

import httpx

Error = TypeVar("Error", bound=httpx.HTTPError)


def named(error: httpx.TransportError, asked: str, request: httpx.Request) -> httpx.TransportError:
    """The same kind of error with what was asked in its message, and a hint."""
    said = str(error) or type(error).__name__
    same = type(error)(f"{said} ({asked})", request=request)
    return hinted(same, _hint(error))


def too_slow(asked: str, timeout_s: float, request: httpx.Request) -> httpx.TransportError:
    error = httpx.ReadTimeout(f"no complete reply in {timeout_s:g} s ({asked})", request=request)
    return hinted(error, _hint(error))


def hinted(error: Error, hint: str | None) -> Error:
    """Whoever shows an error shows its `hint`; httpx's classes have no such attribute."""
    vars(error)["hint"] = hint
    return error


def _hint(error: httpx.TransportError) -> str:
    match error:
        case httpx.TimeoutException():
            return "Is the server busy or still loading? Else raise the model's timeout_s."
        case httpx.ConnectError():
            return "Start the model server, or mend the base URL: unified-flow doctor tries it."
        case httpx.ProxyError():
            return "Mend the proxy in HTTP_PROXY or HTTPS_PROXY, or except the host in NO_PROXY."
    return "The connection broke off: the model server's own log says why."
