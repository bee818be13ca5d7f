"""The events of the prepared cases by every protocol of built-in agents, a masked digest each.

`python -m tests.golden.traces` keeps them anew, after weights or behaviour were changed on purpose;
a move of code leaves them as they are. With `--add` it accepts this processor's beside the others:
8-bit sums round differently, so that nearly equal passages may change places.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import sys
import tempfile
from pathlib import Path

from core.baseline.examples import PREPARED_CASES, PreparedCase
from core.debate.protocols import list_protocols
from core.pipeline.single_check import CheckRequest, check_once

KEPT = Path(__file__).with_name("traces.json")
CUT = 8
"""Characters of a digest."""
MASKS = (
    (re.compile(r'"(\w*at|seconds|duration)":\s*-?[\d.]+(e-?\d+)?'), r'"\1":0'),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "ID"),
    # Processors round the readers' int8 sums differently.
    (re.compile(r"-?\d+\.\d+(e-?\d+)?|\b\d+ ?%"), "0"),
    (re.compile(r'"(code|classifier|ledger|key)":\s*"[^"]*"'), r'"\1":""'),
)
Traces = dict[str, str]


def traces_of(folder: Path) -> Traces:
    """By case and protocol the events stored, each as its kind and a digest of the rest."""
    found: Traces = {}
    for example in PREPARED_CASES:
        for protocol in list_protocols(None):
            home = folder / f"{example.name}-{protocol}"
            found[f"{example.name} {protocol}"] = " ".join(_events(home, example, protocol))
    return found


def _events(home: Path, example: PreparedCase, protocol: str) -> list[str]:
    home.mkdir()
    paths = []
    for name, data in example.files():
        path = home / name
        path.write_bytes(data)
        paths.append(path)
    request = CheckRequest(example.response, example.question, paths, protocol=protocol)
    check_once(home / "home", request, lambda: 1000.0)
    with sqlite3.connect(home / "home" / "counterpoint.db") as store:
        rows = store.execute("SELECT kind, payload FROM events ORDER BY run_id, seq").fetchall()
    # Turns of one round end in any order.
    return sorted(f"{kind}:{_digest(payload)}" for kind, payload in rows)


def _digest(payload: str) -> str:
    for pattern, masked in MASKS:
        payload = pattern.sub(masked, payload)
    return hashlib.sha256(payload.encode()).hexdigest()[:CUT]


def main() -> None:
    """Keep today's traces."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if "--add" in sys.argv else {}
    with tempfile.TemporaryDirectory() as folder:
        found = {
            name: sorted({told, *kept.get(name, ())})
            for name, told in traces_of(Path(folder)).items()
        }
    text = json.dumps(found, indent=1) + "\n"
    KEPT.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{KEPT.name}: {len(json.loads(text))} runs\n")


if __name__ == "__main__":
    main()
