"""The tools that come with the flow."""
