"""What knows nothing of the flow: text, time, threads, a sandbox for untrusted files."""
