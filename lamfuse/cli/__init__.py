"""The command line: one module a command.

Commands parse, call, and print; they decide nothing. ``main`` finds them, ``render`` is how values
become text, ``exit_codes`` is the one place where an error becomes a number. What a command needs
is imported when it runs, so that ``lamfuse --help`` starts at once.
"""
