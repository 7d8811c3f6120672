"""`python -m toolbatch.cli`."""

import sys

from ._main import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
