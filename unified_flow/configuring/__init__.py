"""Telling a person about the settings: which there are, what each is now, and who said so."""
