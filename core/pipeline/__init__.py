"""How a review is carried out: the order of its stages, jobs, live runs and cost."""
