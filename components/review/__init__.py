"""How people answer and settle, with their words."""

import json
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = json.loads(
    Path(__file__).with_name("words.json").read_text(encoding="utf-8")
)
