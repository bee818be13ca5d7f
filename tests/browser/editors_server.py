"""Serves `editors_app.py` as the product's own server would: `python -m … PORT`."""

from __future__ import annotations

import sys
from pathlib import Path

from components.app.launch import serve

if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(__file__).with_name("editors_app.py"))
