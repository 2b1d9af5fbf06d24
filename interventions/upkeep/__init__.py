"""Looking after the queue: is it well, what is wrong with its files, and the mending of that."""
