"""What an integration needs to tell the model of arguments that another framework refused, in this package's words.

No part of what is promised to users: it changes when the tools do.
"""

from ._complaint import Problem, complaint, place, required, shown

__all__ = ["Problem", "complaint", "place", "required", "shown"]
