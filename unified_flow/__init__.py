"""A fail-fast, eight-phase RAG orchestrator with a human intervention queue."""

__version__ = "0.1.0"
