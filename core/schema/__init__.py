"""The records, events and roles that every package reads: frozen values, and the fold of events."""
