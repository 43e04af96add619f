"""What ``lamfuse doctor`` looks at: one module a part of the machine, each yielding findings.

A probe changes nothing (but for the private mount of ``rules``, which is taken away again), prints
nothing, and may take as long as it likes: whoever calls it runs it in a process of its own and
stops waiting for it. What it reads of the machine comes through :class:`machine.Machine`, so that
every finding can be tried out without such a machine.
"""
