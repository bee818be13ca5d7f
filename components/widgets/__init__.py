"""What all screens are built from: HTML, wording, charts, drafts, editors."""
