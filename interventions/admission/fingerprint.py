"""Which failures are the same failure.

A hash of phase, tool, qualified exception type, normalised message and the innermost in-app
`module:function`. No line number: an edit above the line must not make it another failure.
"""

from __future__ import annotations

import hashlib
import re

FP_VERSION = 1

# The order matters: each form would be eaten in part by one of those after it.
_NORMAL_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("email", re.compile(r"[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9.\-]{1,200}\.[A-Za-z]{2,24}\b")),
    ("url", re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.\-]{1,20}://[^\s\"'<>\\)\]}]+")),
    (
        "host",
        re.compile(
            r"\b(?:localhost|(?:[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])?\.)+"
            r"(?:com|org|net|io|dev|app|edu|gov|info|local|internal|lan|cloud|ai|se|de|fr|uk|eu|cn|jp))"
            r"(?::\d{1,5})?\b"
        ),
    ),
    (
        "ip",
        re.compile(
            r"\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?::\d{1,5})?\b"
            r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}(?![\w:])"
            r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6}(?![\w:])|(?<![\w:])::1(?![\w:])"
        ),
    ),
    ("traceid", re.compile(r"\b00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\b")),
    ("uuid", re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")),
    ("sha", re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40}|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{32})\b")),
    (
        "date",
        re.compile(
            r"\b\d{4}-\d{2}-\d{2}"
            r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+\-]\d{2}:?\d{2})?)?"
            r"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \d{1,2} \w{3} \d{4}"
            r"(?: \d{2}:\d{2}:\d{2})?(?: GMT| UTC)?"
            r"|\b\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?\b|\b\d{1,2}/\d{1,2}/\d{4}\b"
        ),
    ),
    (
        "duration",
        re.compile(
            r"\b\d+(?:\.\d+)? ?"
            r"(?:ns|us|µs|ms|s|sec|secs|seconds?|min|mins|minutes?|h|hours?|days?)\b"
        ),
    ),
    ("hex", re.compile(r"\b0[xX][0-9a-fA-F]+\b")),
    (
        "float",
        re.compile(r"(?<![\w.])[+\-]?\d+\.\d+(?:[eE][+\-]?\d+)?(?![\w.])|\b\d+[eE][+\-]?\d+\b"),
    ),
    ("int", re.compile(r"(?<![A-Za-z])[+\-]?\d+(?![A-Za-z])|(?<=[_\-/#])\d+")),
    # Only after `=`: in "no tool 'doc.search'" the quoted name is what failed.
    ("str", re.compile(r"(?<==)(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')")),
)


def normalise(message: str) -> str:
    """The message without what differs from one occurrence to the next."""
    text = message[:4000]
    for name, form in _NORMAL_FORMS:
        text = form.sub(f"<{name}>", text)
    return " ".join(text.split())


def fingerprint(
    *, phase: str, tool: str | None, exception_type: str, message: str, culprit: str
) -> str:
    """`exception_type` is qualified where known; `culprit` is `module:function` or empty."""
    parts = (str(FP_VERSION), phase, tool or "", exception_type, normalise(message), culprit)
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
