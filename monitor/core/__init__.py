"""What needs no terminal: what is read, what is shown of it, what is done to it."""
