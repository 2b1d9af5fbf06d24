"""The HTTP face of the flow (architecture/serving.md). FastAPI, uvicorn and prometheus_client are
the extra `serve`; nothing outside of this package imports it before somebody serves.
"""
