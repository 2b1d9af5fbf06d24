"""What makes a model another one for an evaluation's run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from unified_flow.config.settings import load
from unified_flow.errors import ConfigError
from unified_flow.evaluation.runs import identities_of, identity_of


def test_a_file_of_another_size_or_time_is_another_model(home: Path) -> None:
    file = home / "model.gguf"
    name = f"local:{file}"
    settings = load(home, model=name)
    file.write_bytes(b"GGUF one")
    os.utime(file, ns=(1, 1))
    first = identity_of(settings, name)
    assert first == "model.gguf 8 1"
    os.utime(file, ns=(1, 2))
    later = identity_of(settings, name)
    file.write_bytes(b"GGUF other")
    os.utime(file, ns=(1, 2))
    assert len({first, later, identity_of(settings, name)}) == 3
    assert identities_of(settings, [name, "embedded"])["embedded"] == "embedded"
    file.unlink()
    with pytest.raises(ConfigError, match="there is no model file"):
        identity_of(settings, name)


def test_a_server_is_known_by_its_address_and_its_name_for_the_model(home: Path) -> None:
    settings = load(home, model="m", base_url="http://127.0.0.1:1/v1")
    assert identity_of(settings, "m") == "m http://127.0.0.1:1/v1"


def test_the_file_that_makes_vectors_is_a_model_too(home: Path) -> None:
    (home / "vectors.gguf").write_bytes(b"GGUF")
    (home / "unified_flow.toml").write_text('vectors = "vectors.gguf"\n')
    assert "vectors.gguf 4 " in identities_of(load(home), ["embedded"])["vectors"]
