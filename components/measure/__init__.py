"""The screens that measure people, agents and verdicts."""
