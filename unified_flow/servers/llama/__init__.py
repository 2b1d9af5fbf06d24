"""A language model from a file: llama.cpp's own server, as a child process on loopback."""
