"""`unified-flow chat`: a conversation, with every failure met and mended inside it."""

HISTORY = "chat_history"  # in the state folder: what was typed, for the editor of every chat
