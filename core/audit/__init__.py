"""Checks a whole response statement by statement with tools, memory and reflection (HaluAgent 2.3).

Nothing here knows who plays a role or what comes before and after: `core/auditing.py` does.
"""
