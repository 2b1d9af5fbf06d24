"""What keeps a web page from being read.

ToolError
└── PageError                 it has a `url`
    ├── PageUnusableError     it is there, and is too large, or no text
    ├── PageTimeoutError      also a ToolTimeoutError
    ├── AddressRefusedError   also a PermissionError
    ├── PageRefusedError      also a PermissionError
    └── CaptchaError          also a PermissionError
"""

from __future__ import annotations

from unified_flow.errors import ToolError, ToolTimeoutError


class PageError(ToolError):
    """`url` is the address that was asked for, or the one that it redirected to."""

    def __init__(self, message: str, *, url: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.url = url


class PageUnusableError(PageError):
    pass


class PageTimeoutError(PageError, ToolTimeoutError):
    pass


class AddressRefusedError(PageError, PermissionError):
    """Where no request is sent: a private address, another scheme, a port that is not allowed."""


class PageRefusedError(PageError, PermissionError):
    """A site that wants a login, or lets no program in."""


class CaptchaError(PageError, PermissionError):
    """A site wants to see a person first."""

    intervention_type = "captcha"
