"""A failure: caught in one place, named, told."""
