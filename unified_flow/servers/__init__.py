"""Servers that speak the OpenAI protocol: how they are reached and, llama.cpp's, started."""
