"""How many tokens a text is, roughly, before any tokenizer is known."""

BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """UTF-8 bytes by four: about right for English, and never far too low for other scripts."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
