"""Settings: their tables, their file, and telling a person what they are."""
