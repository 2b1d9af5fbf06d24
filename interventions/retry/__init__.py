"""Letting the turns of an entry go on, through whatever program can."""
