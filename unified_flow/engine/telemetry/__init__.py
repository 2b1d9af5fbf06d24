"""What is written of requests and runs."""
