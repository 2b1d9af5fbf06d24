"""Whether a tool may run, and who said so."""
