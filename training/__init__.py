"""Scripts that train the shipped weights. The app imports nothing from this package."""
