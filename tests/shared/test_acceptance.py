"""The short form of the acceptance run; `make soak` has the long one."""

from __future__ import annotations

import os

import pytest

from tests.shared import acceptance


@pytest.mark.long
def test_every_turn_comes_to_its_one_end() -> None:
    long = os.environ.get("SOAK")
    report = acceptance.run(1000, 20) if long else acceptance.run(36, 2, workers=2)
    assert report.ok, "\n".join(report.lines)
