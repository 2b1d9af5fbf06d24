"""`unified-flow chat`: a conversation, in which every failure is met, mended and retried."""
