"""Asks a person, through one channel or another.

Each channel implements :class:`lamfuse.engine.ports.Notifier`. None of them decides anything: what
a channel returns is what a person said, and whatever goes wrong with it is never a yes.
"""
