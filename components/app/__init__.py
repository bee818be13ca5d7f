"""What every page shares: menu, login, state of the session and the server process, launch."""
