"""Ways to argue, one file each; all take the floor in `floor.py` and yield the same events."""

# In the order in which they are offered; `protocols.py` has each with its code. Kept here, so that
# a page that only names them loads none.
NAMES = (
    "ceda",
    "single",
    "ensemble",
    "colmad",
    "copmad",
    "society",
    "mad",
    "mamm_refine",
    "sc_maks",
    "adaptive",
)
