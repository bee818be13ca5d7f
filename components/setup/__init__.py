"""The screens of settings, rosters, projects, prompts, files."""
