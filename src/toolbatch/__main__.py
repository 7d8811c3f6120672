"""`python -m toolbatch`: the command line, also where the script is not on the path."""

import sys

from toolbatch.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
