"""The command line. Each command loads what it needs when it runs, not before."""
