"""Clean processes of 49 kinds, for holding promises about normal data against them.

Each is a short function from a number of rows and a random generator to rows (n, CHANNELS), and
nothing in them is a fault: what is rare in the training rows is as rare in all others.
"""

from processes.blocks import CHANNELS, Array, Kind
from processes.rough import KINDS as ROUGH
from processes.smooth import KINDS as SMOOTH

KINDS = (*SMOOTH, *ROUGH)

__all__ = ["CHANNELS", "KINDS", "Array", "Kind"]
