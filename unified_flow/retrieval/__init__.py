"""Retrieval: passages of the user's documents that answer a question."""
