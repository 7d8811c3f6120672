"""The command line: `toolbatch check FILE...` and `toolbatch repair FILE` for stored conversations.

Exit codes: 0 all is lawful, or is now; 1 something breaks the law; 2 a file or an option can't be used.
"""

from ._main import main

__all__ = ["main"]
