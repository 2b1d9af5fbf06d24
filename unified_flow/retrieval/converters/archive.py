"""Zip archives that say they are documents: opened only if what they unpack to is bounded."""

from __future__ import annotations

import io
import zipfile

from unified_flow.lib.sandbox import ConversionLimitError, UnusableError

MAX_UNPACKED = 256 * 1024 * 1024
MAX_ENTRIES = 20_000
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # what Office wraps a password around


def opened(data: bytes) -> zipfile.ZipFile:
    """Raises UnusableError. `zipfile` never reads more of an entry than its size says."""
    if data.startswith(_OLE):
        raise UnusableError("encrypted, or of an older format")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as exc:
        raise UnusableError("broken: not a complete zip archive") from exc
    entries = archive.infolist()
    size = sum(entry.file_size for entry in entries)
    if size > MAX_UNPACKED or len(entries) > MAX_ENTRIES:
        raise ConversionLimitError(
            f"unpacks to {size / 1024 / 1024:,.0f} MiB in {len(entries):,} files, "
            f"{MAX_UNPACKED // 1024 // 1024} MiB in {MAX_ENTRIES:,} at most"
        )
    if any(entry.flag_bits & 1 for entry in entries):
        raise UnusableError("encrypted")
    return archive
