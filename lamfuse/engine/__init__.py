"""Waits: for a person, for a deadline, for a caller that may leave.

trio and the core, and nothing else: no FUSE, no D-Bus, no files. What the engine needs from outside
comes in through the protocols of :mod:`lamfuse.engine.ports`.
"""
