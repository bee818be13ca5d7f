"""Carries out reviews: the order of the stages, jobs, live runs and cost."""
