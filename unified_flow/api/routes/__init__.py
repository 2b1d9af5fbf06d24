"""What can be asked over HTTP, a router each."""
