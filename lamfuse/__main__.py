"""`python -m lamfuse`: the same program as the console script, for a checkout without one."""

from lamfuse.cli.main import main

if __name__ == "__main__":
    main()
