"""Agents that need no key and no network: rules, overlap, entailment, and what they read with."""
