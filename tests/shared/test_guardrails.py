"""Rules that one machine sets hold on all of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from unified_flow.config.tables import GuardrailSettings
from unified_flow.guardrails.guardrails import open_store
from unified_flow.wiring import wire


def test_the_rules_are_in_the_shared_database(shared_home: Path) -> None:
    services = wire(shared_home)
    assert not services.guardrails.are_used
    with closing(open_store(shared_home, GuardrailSettings())) as store:
        store.change("ada", lambda rules: rules.model_copy(update={"flagged_keywords": ("spam",)}))
    assert services.guardrails.are_used
    assert not (shared_home / "shared_state" / "guardrails.sqlite3").exists()
    services.guardrails.check_store()
    with closing(services.guardrails.store()) as store:
        assert [rules.flagged_keywords for rules in store.all_rules()] == [("spam",)]
