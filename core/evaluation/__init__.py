"""Load labelled public data, and measure engines on it."""
