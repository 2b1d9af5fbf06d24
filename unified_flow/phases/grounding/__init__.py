"""Whether a draft stands on its sources, found in code whatever model has written it."""
