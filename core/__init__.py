"""Counterpoint's core: from a claim and its sources to a verdict that people can correct."""
