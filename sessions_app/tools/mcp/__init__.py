"""Tools of MCP servers. The package that speaks the protocol is imported when the first server is enabled."""
