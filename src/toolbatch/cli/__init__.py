"""The command line: `check` and `repair` for stored conversations, `report` for what happened in a run, `doctor` for this machine.

Exit codes: 0 all is as it should be, or is now; 1 something is not; 2 a file or an option can't be used.
"""

from ._main import main

__all__ = ["main"]
