"""Entries as a person sees them: chosen, grouped, described, handed on."""
