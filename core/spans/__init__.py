"""Spans by several agents: each marks words, all others vote on them, and the votes decide."""
