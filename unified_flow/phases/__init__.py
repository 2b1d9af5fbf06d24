"""The eight phases, in their order. Each is a module (see `context.Phase`).

A phase reads the turn, asks its context for what it needs, and returns its section. It catches
nothing and knows neither the queue nor the terminal: the engine's boundary does that for all.
"""

NAMES = (
    "query_analyzer",
    "reflection",
    "context_gatherer",
    "planner",
    "coordinator",
    "synthesis",
    "validation",
    "save",
)
