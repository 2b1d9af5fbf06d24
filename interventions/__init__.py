"""The intervention queue: failures that wait for a person."""
