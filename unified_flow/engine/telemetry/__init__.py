"""What is written of requests and runs, and finding a request in it again."""
