"""lamfuse: the files of a home directory for an AI agent, without the home directory.

Packages import downward only:
cli > app > fuse | notify | store | mcp_server | sandbox > control > engine | tree > core.
Nothing is imported here, so that `import lamfuse` costs nothing and hides no cycle.
"""

__all__: list[str] = []
