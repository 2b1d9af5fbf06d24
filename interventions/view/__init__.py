"""Entries as a person sees them: queried, grouped, described, exported."""
