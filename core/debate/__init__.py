"""Ways to argue, one file each; all take the same views and yield the same events."""
