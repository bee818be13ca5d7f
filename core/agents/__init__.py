"""Agents played by language models, and rosters of agents."""
