"""What may be answered: a user's rules and moderation, before the model and after it.

Needs the extra `guardrails`. How it fits together: architecture/guardrails.md.
"""
