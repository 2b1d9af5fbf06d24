"""A function that the model may call. It takes a language model, named in the environment:

UNIFIED_FLOW_MODEL=qwen2.5:7b UNIFIED_FLOW_BASE_URL=http://127.0.0.1:11434/v1 \
    python examples/own_tool.py
"""

import sys

from unified_flow import UnifiedFlow, tool

OPENING_HOURS = {"library": "9 to 18", "museum": "10 to 17, closed on Mondays"}


@tool(access="reads")  # or "writes", "network"; what declares nothing runs only if allowed
def opening_hours(place: str) -> str:
    """When a place in town is open.

    Args:
        place: library or museum
    """
    return f"The {place} is open from {OPENING_HOURS[place.lower()]}."


if __name__ == "__main__":
    question = sys.argv[1] if len(sys.argv) > 1 else "When is the museum open?"
    turn = UnifiedFlow.from_config(tools=[opening_hours]).ask(question)
    print(turn.response)
    for result in turn.sections.coordinator:  # what the tools returned
        print(f"  {result.tool}: {str(result.result)[:100]}")
    if not any(result.tool == "opening_hours" for result in turn.sections.coordinator):
        print("The tool was not called. Is there a model? Only one chooses tools: see the top.")
