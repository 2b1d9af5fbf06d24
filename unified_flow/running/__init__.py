"""How a turn goes on: what comes next, and the doors through which its phases reach the world."""
