"""What people review and in which order; who they are, and where they agree."""
