"""Agents on language models, and rosters of agents."""
