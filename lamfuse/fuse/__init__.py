"""Speaks to the kernel: the only package that imports pyfuse3.

Handlers translate: a kernel request into a target, a refusal into an errno. They decide nothing.
"""
