"""The local socket through which a person's commands reach a running daemon.

``wire`` is the protocol and does no I/O, ``peer`` decides who may speak, ``server`` and ``client``
are the two ends. Nothing here decides about files: the server hands every request to a ``Backend``.
"""
