"""How the classifier and the span threshold learn, with their words."""

import json
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = json.loads(
    Path(__file__).with_name("words.json").read_text(encoding="utf-8")
)
