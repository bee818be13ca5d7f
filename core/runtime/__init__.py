"""What every package runs on: settings, errors, concurrency."""
