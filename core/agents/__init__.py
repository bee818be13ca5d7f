"""Who plays the roles: rosters by name."""
