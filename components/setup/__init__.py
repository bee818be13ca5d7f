"""How a project is set up: settings, models, prompts, people, import and export."""
