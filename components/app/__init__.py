"""The frame of every page: menu, login, state of session and process, launch."""
