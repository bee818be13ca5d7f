"""The formats' names, apart from their code: the command line lists them without loading it."""

from __future__ import annotations

WRITTEN = ("jsonl", "csv", "label-studio", "argilla", "mu-shroom", "ragtruth")
ONLY_READ = ("faithbench", "haluquestqa", "xsum", "mad")  # public sets as they lie
