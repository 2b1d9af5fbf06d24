"""What must not leave the turn."""
