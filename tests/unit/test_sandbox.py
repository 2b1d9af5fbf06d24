"""The process that reads what strangers wrote, held to its bounds."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from unified_flow.lib.sandbox import SandboxLimits, UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.retrieval.formats import html

HTML = f"{html.__name__}:html_sections"
MIB = 1024 * 1024


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes one whose `convert` has these lines."""

    def write(name: str, *lines: str) -> None:
        head = "import os, pathlib\nfrom unified_flow.lib.sandbox import Section\n"
        body = "".join(f"    {line}\n" for line in lines)
        (tmp_path / f"{name}.py").write_text(f"{head}def convert(data):\n{body}")
        monkeypatch.setenv("PYTHONPATH", f"{Path.cwd()}:{tmp_path}")

    return write


def test_what_takes_all_memory_is_not_read_and_the_next_one_is(
    module: Callable[..., None],
) -> None:
    module("greedy", "yield Section(('a',), [str(len(data * 400))])")
    with Converter(SandboxLimits(memory_bytes=200 * MIB)) as converter:
        with pytest.raises(UnusableError, match="more than 200 MiB of memory"):
            converter.convert("greedy:convert", b"x" * MIB)
        assert converter.convert("greedy:convert", b"x")[0].lines == ["400"]


def test_in_a_process_with_many_open_files(module: Callable[..., None]) -> None:
    """Such as a service with a thousand clients: select() knows no descriptor above 1023."""
    module("small", "yield Section(('a',), [str(len(data))])")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        with Converter(SandboxLimits()) as converter:
            assert converter.convert("small:convert", b"abc")[0].lines == ["3"]
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_html_that_takes_all_memory() -> None:
    page = b"<p>" * 1_000_000
    with (
        Converter(SandboxLimits(memory_bytes=96 * MIB)) as converter,
        pytest.raises(UnusableError, match=r"memory|ended on it"),
    ):
        converter.convert(HTML, page)


def test_a_module_that_prints_does_not_disturb_the_answers(
    tmp_path: Path, module: Callable[..., None]
) -> None:
    module(
        "loud",
        "print('{}'); os.write(1, b'{}\\n')",
        "if data == b'leave': os._exit(7)",
        "if data == b'write': pathlib.Path(__file__).with_name('new').write_text('x')",
        "if data == b'wait':",
        "    pathlib.Path(__file__).with_name('waits').mkdir()",
        "    while True: pass",
        "yield Section(('a',), [data.decode()])",
    )

    def kill_once_it_waits() -> None:
        while not (tmp_path / "waits").exists():
            time.sleep(0.005)
        converter.kill()

    with Converter(SandboxLimits(timeout_s=5)) as converter:
        assert converter.convert("loud:convert", b"said")[0].lines == ["said"]
        for data, said in ((b"leave", "status 7"), (b"write", "broken: OSError|signal 25")):
            with pytest.raises(UnusableError, match=said):
                converter.convert("loud:convert", data)
        threading.Thread(target=kill_once_it_waits).start()
        with pytest.raises(UnusableError, match="signal 9"):
            converter.convert("loud:convert", b"wait")


def test_a_lower_limit_of_whoever_starts_it_holds() -> None:
    """Such as `ulimit -v`: a limit that cannot be raised is no reason not to read."""
    script = (
        "import sys\nfrom unified_flow.lib.sandbox.parent import Converter\n"
        f"with Converter() as c: print(c.convert({HTML!r}, b'<p>fine')[0].lines[0])"
    )
    limit = 900 * MIB
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.stdout == "fine\n", done.stderr
