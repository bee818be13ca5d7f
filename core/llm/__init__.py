"""Models behind the agents: the sentence encoder, run without torch."""
