"""Settings: which source wins, and what a mistake looks like."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from unified_flow.config.settings import Settings, SettingsOverrides, load
from unified_flow.config.settings_reference import settings_of
from unified_flow.config.tool_names import FAMILIES
from unified_flow.errors import ConfigError
from unified_flow.flow import ProcessOptions, UnifiedFlow
from unified_flow.wiring import wire


def test_flag_over_environment_over_file_over_default(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load(home).model == "embedded"
    (home / "unified_flow.toml").write_text('model = "file"\n[limits]\nrevise = 7\nretry = 3\n')
    assert load(home).model == "file"
    monkeypatch.setenv("UNIFIED_FLOW_MODEL", "environment")
    monkeypatch.setenv("UNIFIED_FLOW_LIMITS__RETRY", "0")
    assert load(home).model == "environment"
    assert (load(home).limits.retry, load(home).limits.revise) == (0, 7)
    assert load(home, model="flag").model == "flag"
    assert load(home, model=None).model == "environment", "a flag that is not given says nothing"


def test_pyproject_holds_the_same_under_tool(home: Path) -> None:
    (home / "pyproject.toml").write_text('[tool.unified_flow]\nmodel = "m"\n')
    assert load(home).model == "m"
    (home / "unified_flow.toml").write_text('model = "own"\n')
    assert load(home).model == "own"


PATHS = """
docs = ["here", "~/there", "https://example.org/page"]
roots = ["here"]
recipes = "here"
api_key_file = "~/there"
model = "local:here"
roles = { reflex = "local:~/there", voice = "big" }
graceful = { failover = "local:here" }
local = { path = "~/there" }
vectors = "here.gguf"
serve = { token_file = "here", triage_token_file = "~/there", metrics_token_file = "here" }
tools = { modules = ["here.py:tool", "json", "~/there.py"] }
collections = { manuals = { docs = ["here", "~nobody-of-this-name/x"] } }
models = { big = { model = "here", base_url = "http://here/v1", api_key_file = "here" } }
mcp = { one = { command = "./here" }, two = { command = "here" } }
"""


def test_paths_in_the_file_are_relative_to_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    (home / "unified_flow.toml").write_text(PATHS)
    here, there = home / "here", tmp_path / "me" / "there"
    found = load(home)
    assert found.docs == [here, there, "https://example.org/page"]
    assert (found.roots, found.recipes, found.api_key_file) == ([here], here, there)
    assert (found.model, found.local_path(found.model)) == (f"local:{here}", here)
    assert (found.roles.reflex, found.roles.voice) == (f"local:{there}", "big")
    assert (found.graceful.failover, found.local.path) == (f"local:{here}", there)
    assert found.vectors.path == home / "here.gguf"
    assert found.models["big"].api_key_file == here
    assert found.models["big"].model == "here", "the server's own name"
    assert (found.serve.token_file, found.serve.triage_token_file) == (here, there)
    assert found.tools.modules == [f"{here}.py:tool", "json", f"{there}.py"]
    assert found.collections["manuals"].docs == [here, home / "~nobody-of-this-name/x"]
    assert [server.command for server in found.mcp.values()] == [str(here), "here"]


def test_a_path_in_the_environment_is_relative_to_where_the_command_runs(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "unified_flow.toml").write_text('recipes = "here"\n')
    monkeypatch.setenv("UNIFIED_FLOW_RECIPES", "there")
    assert load(home).recipes == Path("there")


def test_no_setting_that_is_a_path_is_left_out_of_the_test_above() -> None:
    def named(table: type[BaseModel]) -> Iterator[str]:
        for name, field in table.model_fields.items():
            kinds = [field.annotation, *get_args(field.annotation)]
            inner = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
            for each in inner:
                yield from named(each)
            if not inner and re.search(r"Path|_Holds", f"{field.annotation} {field.metadata}"):
                yield name

    left_out = {name for name in named(Settings) if f"{name} =" not in PATHS}
    assert left_out == {"mind"}, "which is as the other roles are"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('polcy = "x"', "did you mean 'policy'"),
        ("[limits]\nretri = 1", "did you mean 'retry'"),
        ('[models.x]\nmodel = "a"\nbase_url = "u"\napi_key = "sk-1"', "unknown setting"),
        ("vectors = 3", "'vectors' is wrong: it is a table"),
        ("[limits]\nretry = -1", "'limits.retry' is wrong"),
        ("model = \n", "unified_flow.toml cannot be read: .*line 1"),
    ],
)
def test_a_mistake_is_named(text: str, message: str, home: Path) -> None:
    (home / "unified_flow.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(home)


def test_a_server_for_the_vectors_alone_needs_no_other_model(home: Path) -> None:
    (home / "unified_flow.toml").write_text('vectors = "emb"\nbase_url = "http://127.0.0.1:9/v1"\n')
    load(home).check_models(present={"embedded"})


def test_the_tables_of_the_queue_are_left_to_the_queue(home: Path) -> None:
    (home / "unified_flow.toml").write_text("[queue]\nmax_size = 3\n")
    assert load(home).model == "embedded"


def test_a_model_without_a_server_is_refused_with_the_way_out(home: Path) -> None:
    with pytest.raises(ConfigError, match="not configured") as raised:
        load(home, model="gpt").endpoint("gpt")
    assert "--base-url" in (raised.value.hint or "")


@pytest.mark.parametrize("value", ["inf", "nan", "0"])
def test_a_time_is_a_finite_one(home: Path, value: str) -> None:
    file = home / "unified_flow.toml"
    file.write_text(f'[mcp.a]\ncommand = "true"\ntimeout_s = {value}\n')
    with pytest.raises(ConfigError, match=r"mcp\.a\.timeout_s"):
        load(home)


def test_a_server_is_not_called_as_built_in_tools_are(home: Path) -> None:
    services = wire(home, docs=[home])
    names = [tool.name for tool in services.toolbox]
    assert {name.partition(".")[0] for name in names if "." in name} == FAMILIES
    for name in FAMILIES:
        (home / "unified_flow.toml").write_text(f'[mcp.{name}]\ncommand = "true"\n')
        with pytest.raises(ConfigError, match=f"{name} is what built-in tools are called"):
            load(home)


def test_a_typo_of_a_key_that_is_needed_is_told_before_what_it_causes(home: Path) -> None:
    (home / "unified_flow.toml").write_text('[models.big]\nmodell = "x"\nbase_url = "http://a"\n')
    with pytest.raises(ConfigError, match=r"models\.big\.modell.*did you mean 'model'"):
        load(home)


@pytest.mark.parametrize("value", ["RETY=1", "RETRY=many"])
def test_a_nested_variable_that_is_wrong_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    (home / "unified_flow.toml").write_text('model = "m"\nbase_url = "http://127.0.0.1:9"\n')
    name, _, text = f"UNIFIED_FLOW_LIMITS__{value}".partition("=")
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigError, match=f"in the environment variable {name}"):
        load(home)


def test_what_has_to_be_a_list_is_shown_as_one(home: Path) -> None:
    (home / "unified_flow.toml").write_text('[tools]\nallow = "time.*"\n')
    with pytest.raises(ConfigError, match="valid list") as caught:
        load(home)
    assert caught.value.hint == "write it as a list: ['time.*']"


def test_no_secret_of_a_server_or_of_the_notifications_is_shown(home: Path) -> None:
    (home / "unified_flow.toml").write_text(
        '[mcp.gh]\ncommand = "x"\nenv = {ACME_KEY = "zzz-yyy-xxx"}\n'
        '[mcp.web]\nurl = "https://host/mcp?key=abcdef1234567890"\n'
        '[notifications]\nurl = "tgram://123456789:abcdefg_hijklmnop/12315544/"\n'
    )
    shown = {setting.key: setting.value for setting in settings_of(home)}
    assert shown["mcp.gh.env"] == {"ACME_KEY": "[redacted]"}
    assert shown["mcp.web.url"] == "https://host/mcp?[redacted]"
    assert shown["notifications.url"] == "[redacted]"
    assert "zzz-yyy" not in str(shown)


def test_a_program_may_override_every_setting() -> None:
    own = {"docs", "model", "tools"}  # parameters of their own, or of another meaning there
    assert SettingsOverrides.__annotations__.keys() == Settings.model_fields.keys() - own


def test_process_request_takes_what_process_takes() -> None:
    parameters = inspect.signature(UnifiedFlow.process).parameters.values()
    options = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    assert ProcessOptions.__annotations__.keys() == options - {"request_id", "repeatable"}
