"""A model behind a client of your own: python examples/own_model.py"""

import asyncio
import json
import re

from unified_flow import ModelCall, ModelReply, UnifiedFlow, prompt


async def chat(messages: list[dict[str, str]], schema: dict[str, object]) -> str:
    """Call your client here: it returns a JSON object that fits `schema`.

    This stand-in quotes the first sentence of the passage that was found first.
    """
    passage = re.search(
        r'<document number="1".*?>\n(.*?)\n</document>', messages[-1]["content"], re.S
    )
    if passage is None:
        return json.dumps({"response": "The documents do not say.", "abstained": True})
    sentence = re.sub(r"</?mark>", "", passage[1]).split(". ")[0]
    return json.dumps({"response": f"{sentence} [1]."})


class OwnModel:
    name = "own"

    async def complete(self, call: ModelCall) -> ModelReply:
        return ModelReply(await chat(prompt(call).messages, call.output.model_json_schema()))

    async def aclose(self) -> None:
        """Close the client's connections."""


async def main() -> None:
    # The voice alone is the own model's: rules do the other phases. model=OwnModel() gives it all.
    own = {"own": OwnModel()}
    flow = UnifiedFlow.from_config(docs="architecture", extra_models=own, roles={"voice": "own"})
    async with flow:
        turn = await flow.process("an example", "What is a recipe?")
    print(turn.response)
    for citation in turn.citations:
        print(f"  {citation.source}: {citation.heading}")


if __name__ == "__main__":
    asyncio.run(main())
