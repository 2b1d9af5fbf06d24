"""Replies that are kept: a second evaluation gets what the first one got, and asks nobody."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.servers.model_server import ModelServer
from tests.unit.models.calls import PROCEED, call
from unified_flow.evaluation.cache import CachedModel, ReplyCache
from unified_flow.models import ModelReply
from unified_flow.models.openai.model import OpenAIModel
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.sections import Sections


def test_a_reply_that_was_kept_says_all_that_it_said(
    model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script = [PROCEED]
    long = tuple(PriorTurn(turn_id=n, question="q", answer="x" * 400) for n in (1, 2, 3))
    wanted = call(sections=Sections(history=long), budgets={"history": 130})

    async def ask() -> ModelReply:
        cache = ReplyCache(tmp_path)
        model = CachedModel(OpenAIModel("served", model_server.url, "m"), "m", cache)
        try:
            return await model.complete(wanted)
        finally:
            await model.aclose()
            cache.close()

    first, again = asyncio.run(ask()), asyncio.run(ask())
    assert first == again
    assert again.left_out == {"history": 2}
    assert len(model_server.requests) == 1
