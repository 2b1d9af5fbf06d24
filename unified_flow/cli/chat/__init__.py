"""`unified-flow chat`: a conversation, with every failure met and mended inside it."""
