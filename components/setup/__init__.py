"""How a project is set up, with the words of its screens."""

import json
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = json.loads(
    Path(__file__).with_name("words.json").read_text(encoding="utf-8")
)
