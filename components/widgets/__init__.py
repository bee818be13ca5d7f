"""What any screen draws with: HTML, words, charts, drafts, editors."""
