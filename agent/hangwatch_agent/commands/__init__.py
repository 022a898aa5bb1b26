"""The commands that need no server package: one module per group of commands.

Each has `add(commands)`, which declares its parsers and sets `handler`, a function from the parsed
arguments to the exit code.
"""
