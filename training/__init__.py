"""Scripts that make the weights that ship. The app imports nothing of this folder."""
