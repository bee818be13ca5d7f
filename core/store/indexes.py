"""Indexes for long queues, as migrations create them; released ones are never edited."""

# Counts and pages of the queue, claims in hand, children of a run, judgements to learn from, and
# what tells whether any run has ended since something was kept.
LONG_QUEUES = """
    DROP INDEX items_teaching;
    CREATE INDEX items_teaching ON items (project_id, state, teaches DESC, added_at);
    CREATE INDEX items_counts ON items (project_id, state, given, differ);
    CREATE INDEX assignments_held ON assignments (until) WHERE state = 'claimed';
    CREATE INDEX runs_ended ON runs (finished_at) WHERE finished_at IS NOT NULL;
    CREATE INDEX runs_parent ON runs (parent_id) WHERE parent_id IS NOT NULL;
    CREATE INDEX events_judged ON events (run_id, seq) WHERE kind = 'judgement_reached';
"""
