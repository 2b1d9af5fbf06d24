"""The tools of MCP servers; the extra `mcp` brings the SDK."""
