"""Tools of this home."""


def write_note(text: str) -> str:
    """Write a note."""
    return f"noted: {text}"
