"""What a client is told of an error, and in which form."""
