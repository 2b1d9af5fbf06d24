"""`init` and `config`: a file to begin with, and what is in force."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unified_flow.cli.app import app
from unified_flow.config.settings import NOT_OURS, Settings, load
from unified_flow.config.settings_reference import template
from unified_flow.errors import ConfigError

runner = CliRunner()


def shown(*args: str) -> dict[str, dict[str, object]]:
    outcome = runner.invoke(app, ["config", "show", "--json", *args])
    assert outcome.exit_code == 0, outcome.output
    return {row["key"]: row for row in json.loads(outcome.stdout)["settings"]}


def test_init_writes_a_file_that_the_flow_takes(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    args = ["init", str(tmp_path), "--docs", str(tmp_path / "papers")]
    assert runner.invoke(app, args).exit_code == 0
    assert load(tmp_path).docs == [tmp_path / "papers"]
    page = ["--docs", "https://example.org/page", "--force"]
    assert runner.invoke(app, [*args, *page]).exit_code == 0
    assert load(tmp_path).docs == [tmp_path / "papers", "https://example.org/page"]
    missing = runner.invoke(app, [*args, "--docs", "nowhere", "--force"])
    assert (missing.exit_code, "nowhere" in missing.stderr) == (2, True)
    assert load(tmp_path).model_copy(update={"docs": []}) == Settings()
    again = runner.invoke(app, args)
    assert again.exit_code == 2
    assert "--force" in again.stderr
    assert runner.invoke(app, [*args, "--force"]).exit_code == 0


def test_what_the_file_shows_commented_out_is_the_default() -> None:
    written = re.sub(r"(?m)^# (?=[a-z_]+ = (?!\"…\"))", "", template().split("\n# [")[0])
    values = tomllib.loads(re.sub(r"(?ms)^# more .*", "", written))
    defaults = Settings().model_dump(mode="json")
    assert values["queue"]["max_size"] == 50
    assert values["limits"] == defaults["limits"]
    top = {key: value for key, value in values.items() if not isinstance(value, dict)}
    assert {"model", "timeout_s", "policy"} <= set(top)
    assert top == {key: defaults[key] for key in top}


def test_show_says_where_each_setting_came_from(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "unified_flow.toml").write_text(
        'model = "file"\nbase_url = "http://127.0.0.1:1/v1"\n[queue]\nmax_size = 9\n'
        '[models.big]\nmodel = "b"\nbase_url = "http://me:hunter2@x/v1"\n'
    )
    monkeypatch.setenv("UNIFIED_FLOW_LIMITS__RETRY", "0")
    monkeypatch.setenv("UNIFIED_FLOW_ROLES", '{"voice": "big"}')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen-anywhere-1234567890")
    rows = shown("--home", str(home))
    file = str(home / "unified_flow.toml")
    assert (rows["model"]["value"], rows["model"]["source"]) == ("file", file)
    assert (rows["queue.max_size"]["value"], rows["queue.max_size"]["source"]) == (9, file)
    assert rows["limits.retry"]["source"] == "UNIFIED_FLOW_LIMITS__RETRY"
    assert rows["roles.voice"]["source"] == "UNIFIED_FLOW_ROLES"
    assert rows["limits.revise"]["source"] == "default"
    assert rows["api_key_env"]["value"] == "OPENAI_API_KEY (set)"
    assert rows["models.big.model"]["value"] == "b"
    assert "hunter2" not in json.dumps(rows)
    assert "sk-not" not in json.dumps(rows)
    assert all(row["description"] for row in rows.values())


def test_an_unknown_variable_is_a_mistake_with_the_name_that_was_meant(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNIFIED_FLOW_POLCY", "fail_fast")
    with pytest.raises(ConfigError, match="did you mean UNIFIED_FLOW_POLICY"):
        load(home)


def test_a_typo_in_a_table_of_the_queue_is_told_with_the_right_keys(home: Path) -> None:
    (home / "unified_flow.toml").write_text("[queue]\nmax_sise = 9\n")
    outcome = runner.invoke(app, ["config", "show", "--home", str(home)])
    assert outcome.exit_code == 2
    assert "max_sise is no" in outcome.stderr
    assert "max_size, " in outcome.stderr


def test_the_schema_knows_every_key_of_the_file(tmp_path: Path) -> None:
    assert runner.invoke(app, ["init", str(tmp_path)]).exit_code == 0
    schema = json.loads((tmp_path / "unified_flow.schema.json").read_text())
    assert schema["additionalProperties"] is False
    known = set(schema["properties"])
    assert {*Settings.model_fields, *NOT_OURS} == known
    assert schema["properties"]["queue"]["properties"]["max_size"]["type"] == "integer"


def test_init_keeps_run_time_state_out_of_git(tmp_path: Path) -> None:
    ignored = tmp_path / ".gitignore"
    ignored.write_text("build/\nlogs/*\n!logs/README.md")
    assert runner.invoke(app, ["init", str(tmp_path)]).exit_code == 0
    assert ignored.read_text() == "build/\nlogs/*\n!logs/README.md\n/shared_state/\n"
    again = runner.invoke(app, ["init", str(tmp_path), "--force"])
    assert "git ignores" not in again.output
    assert ignored.read_text() == "build/\nlogs/*\n!logs/README.md\n/shared_state/\n"


def test_both_folders_say_what_they_are_and_doctor_how_much_they_hold(home: Path) -> None:
    outcome = runner.invoke(app, ["doctor", "--json", "--home", str(home)])
    checks = {each["name"]: each["message"] for each in json.loads(outcome.stdout)["checks"]}
    for name, word in (("shared_state", "interventions list"), ("logs", "errors/")):
        assert word in (home / name / "README.md").read_text()
        assert re.search(r"holds \d+\.\d MB in [1-9]\d* files?$", checks[name])
