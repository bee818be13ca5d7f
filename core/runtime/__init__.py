"""The base of every other package: settings, errors, concurrency."""
