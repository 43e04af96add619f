"""Decides, and does no I/O.

Values in, values out: nothing here imports os, io, time, trio or logging.
The clock comes in as ``now`` (monotonic seconds).
File names are bytes; paths are absolute, normalised bytes.
"""
