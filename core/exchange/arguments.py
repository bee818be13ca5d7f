"""What `import` and `export` take on the command line."""

from __future__ import annotations

import argparse
from typing import Any

from core.formats.names import ONLY_READ, WRITTEN

ARCHIVE = "archive"
TRAJECTORIES = "trajectories"
WHICH = ("all", "reviewed")
IMPORT_WORDS = """\
Bring cases with their labels into a project: gold answers, suggestions of an agent, or cases alone.

A row keeps its id; the same id with the same texts is the same case, so importing a file again
changes nothing. Rows that cannot be read are listed with line and reason, the others come in. Files
may be gzipped. What several annotators said becomes their own answers, named “NAME (imported)”."""
IMPORT_EXAMPLES = """\
examples:
  python -m core import --format jsonl cases.jsonl
  python -m core import --format mu-shroom mushroom.en-val.v2.jsonl.gz --project Answers
  python -m core import --format ragtruth response.jsonl --sources source_info.jsonl
  python -m core import --format csv predictions.csv --as suggestions --agent my-detector --json
  python -m core import --format archive project.zip

exit code: 0 something came in or was there already; 1 the result could not be written; 2 nothing
could be read, with the reason."""
EXPORT_WORDS = """\
Write a project's cases with the answers that count: a settled one, else the newest correction, else
the gold that was imported. An archive holds the whole project with documents, runs and history.
Trajectories are finished audits, step by step, to train an agent on: those that people found right,
and beside them, in FILE.failed.jsonl, the others with what speaks against each."""
EXPORT_EXAMPLES = """\
examples:
  python -m core export --format jsonl --out cases.jsonl
  python -m core export --format label-studio --out tasks.json --only reviewed
  python -m core export --format csv --out - > cases.csv
  python -m core export --format archive --out project.zip
  python -m core export --format trajectories --out trajectories.jsonl --balanced

exit code: 0 written; 1 the file could not be written; 2 bad input, with one line that says so."""


def add_commands(commands: Any, add_home: Any) -> None:
    """Add both commands to the parser's; `add_home` adds `--home` to each."""
    taking = commands.add_parser(
        "import",
        help="bring cases, gold answers or suggestions in from a file",
        description=IMPORT_WORDS,
        epilog=IMPORT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    taking.add_argument("file", metavar="FILE", help="the file, or - for standard input")
    taking.add_argument("--format", required=True, choices=(*WRITTEN, *ONLY_READ, ARCHIVE))
    taking.add_argument(
        "--as",
        dest="labels",
        choices=("gold", "suggestions", "cases"),
        default="gold",
        help="what the labels are: right answers (default), an agent's suggestions, or left out",
    )
    taking.add_argument("--agent", default="", help="whose suggestions they are (default: FILE)")
    taking.add_argument(
        "--sources", metavar="FILE", help="RAGTruth's source_info.jsonl, beside its responses"
    )
    giving = commands.add_parser(
        "export",
        help="write cases and their answers, or a whole project",
        description=EXPORT_WORDS,
        epilog=EXPORT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    giving.add_argument("--format", required=True, choices=(*WRITTEN, ARCHIVE, TRAJECTORIES))
    giving.add_argument("--out", required=True, metavar="FILE", help="the file, or - for stdout")
    giving.add_argument(
        "--only", choices=WHICH, default="all", help="all cases (default), or those with an answer"
    )
    giving.add_argument(
        "--balanced",
        action="store_true",
        help="of trajectories: as many of each label in each language; the rest goes to the other "
        "file",
    )
    for parser in (taking, giving):
        parser.add_argument("--project", metavar="NAME", help="which project (default: the first)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_home(parser)
