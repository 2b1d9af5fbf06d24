"""Where the queue lives: its file, its lock, its archive and logs, and their mending."""
