"""The default model: rules decide, and answers are quotes from the documents."""

from unified_flow.models.embedded.model import EmbeddedModel

__all__ = ["EmbeddedModel"]
