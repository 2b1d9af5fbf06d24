"""Models behind any OpenAI-compatible server."""
