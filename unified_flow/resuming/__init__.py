"""Letting a turn go on after its cause is mended: what is left to do, who may, what changed."""
