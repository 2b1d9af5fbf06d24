"""How a failure enters the queue: what is known of it, the decision, the put."""
