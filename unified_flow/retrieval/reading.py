"""How files are read, as the settings say; the command that reads scanned pages."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath

from unified_flow.errors import InputError
from unified_flow.lib.sandbox import UnusableError
from unified_flow.retrieval.formats.document import extension_of, is_readable

MAX_BYTES = 32 * 1024 * 1024
OCR_TIMEOUT_S = 300.0  # for one document
# All that the command gets of the environment: no key or token of the flow.
_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "PATH", "TESSDATA_PREFIX", "TMPDIR")


@dataclass(frozen=True)
class Reading:
    """The language of what is no running text (None: that of most files), the command for pages
    without text, and the formats of files by patterns of their paths, as extensions without the
    dot."""

    language: str | None = None
    ocr: str | None = None
    formats: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for extension in self.formats.values():
            if not is_readable(f".{extension}"):
                raise InputError(
                    f"{extension!r} is no format that is read here",
                    field="documents.formats",
                    hint="Name it by an extension, such as md, rst, adoc, man, py or openapi.",
                )

    def extension_of(self, path: str) -> str:
        """By which the file is read; the first pattern that fits counts."""
        fitting = (f".{to}" for each, to in self.formats.items() if PurePath(path).match(each))
        return next(fitting, extension_of(path))

    def stored(self) -> str:
        return json.dumps({"language": self.language, "ocr": self.ocr, "formats": {**self.formats}})

    def pages(self, path: str) -> list[str]:
        """What the command prints, in UTF-8, divided at form feeds as OCR programs do between
        pages. `{file}` in it stands for the path; no shell reads it. Raises UnusableError."""
        kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        nothing = subprocess.DEVNULL
        with tempfile.TemporaryFile() as printed:
            try:
                words = [word.replace("{file}", path) for word in shlex.split(self.ocr or "")]
                process = subprocess.Popen(
                    words, stdin=nothing, stdout=printed, stderr=nothing, env=kept, process_group=0
                )
                try:
                    status = process.wait(OCR_TIMEOUT_S)
                finally:
                    with suppress(ProcessLookupError):  # what it started ends with it
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            except (OSError, ValueError) as exc:
                raise UnusableError(f"OCR cannot be started: {exc}") from exc
            except subprocess.TimeoutExpired as exc:
                raise UnusableError(f"OCR took more than {OCR_TIMEOUT_S:g} s") from exc
            if status:
                raise UnusableError(f"OCR ended with status {status}")
            printed.seek(0)
            return printed.read(MAX_BYTES).decode("utf-8", "replace").split("\f")
