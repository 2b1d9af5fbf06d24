"""The commands of triage; `app` can also be mounted by another Typer application."""

from interventions.cli.main import app

__all__ = ["app"]
