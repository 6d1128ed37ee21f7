"""Tools: the port, the registry, the built-in ones, MCP servers."""
