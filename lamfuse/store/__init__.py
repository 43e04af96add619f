"""What survives a run: directories, configuration, journal.

Only lamfuse's own files are opened here, by path; the files of the person belong to
:mod:`lamfuse.tree`. Nothing here decides about a request.
"""
