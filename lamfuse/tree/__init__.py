"""Touches files, by directory descriptors.

os and ctypes; no policy, no waiting, no FUSE. No path is checked here and then used: an object is
opened with O_PATH | O_NOFOLLOW first, and everything that follows acts on that descriptor.
"""
