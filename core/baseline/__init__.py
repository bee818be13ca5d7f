"""The built-in engine: agents that read evidence with small trained models, without an API key."""
