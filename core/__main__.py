"""The command line: `python -m core check|doctor`.

Exit 0 when a run finished, 1 when it failed, 2 for bad input with exactly one line on stderr.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from core.config import MEGABYTE, home_from
from core.errors import InputError, ReviewError

BAD_INPUT = 2
CLAIM_MEGABYTES = 16


class OneLineParser(argparse.ArgumentParser):
    """Argument errors take one line, like every other bad input."""

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with 2."""
        sys.stderr.write(f"{self.prog}: {' '.join(message.split())} (see --help)\n")
        sys.exit(BAD_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    for stream in (sys.stdout, sys.stderr):  # quotes of any language, on any terminal
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    parser = OneLineParser(prog="python -m core", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    _add_check(commands.add_parser("check", help="check one claim against documents and images"))
    doctor = commands.add_parser("doctor", help="say what works here and what to do about the rest")
    _add_home(doctor)
    given = parser.parse_args(arguments)
    try:
        home = home_from(os.environ, given.home)
        if given.command == "doctor":
            from core.doctor import report

            return report(home, sys.stdout)
        return _check(given, home)
    except ReviewError as error:
        sys.stderr.write(" ".join(str(error).split()) + "\n")
        return BAD_INPUT
    except (OSError, sqlite3.Error) as error:
        sys.stderr.write(f"The home cannot be read or written: {' '.join(str(error).split())}\n")
        return BAD_INPUT
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        return 1


def _add_home(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", help="folder for database, documents and models")


def _add_check(parser: argparse.ArgumentParser) -> None:
    claim = parser.add_mutually_exclusive_group(required=True)
    claim.add_argument("--claim", help="the claim, answer or response to check")
    claim.add_argument("--claim-file", help="a UTF-8 file with it, or - for standard input")
    parser.add_argument("--question", default="", help="the question that the claim answers")
    parser.add_argument("--document", action="append", default=[], metavar="FILE")
    parser.add_argument("--image", action="append", default=[], metavar="FILE")
    parser.add_argument("--role", help="CEDA's Role (A.3.1)")
    parser.add_argument("--instruction", help="CEDA's Instruction (A.3.1)")
    parser.add_argument("--roster", default="builtin")
    parser.add_argument("--protocol", default="ceda")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    _add_home(parser)


def _check(given: argparse.Namespace, home: Path) -> int:
    """Check one claim in this process and print the outcome."""
    from core.checking import Request, check_once

    for option in ("claim", "question", "role", "instruction", "roster", "protocol"):
        _require_text(option, getattr(given, option))
    request = Request(
        response=_claim(given),
        question=given.question,
        documents=[Path(name) for name in given.document],
        images=[Path(name) for name in given.image],
        role=given.role,
        instruction=given.instruction,
        roster=given.roster,
        protocol=given.protocol,
    )
    result, complaints = check_once(home, request, time.time)
    for complaint in complaints:
        sys.stderr.write(" ".join(complaint.split()) + "\n")
    if given.json:
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    else:
        _print_plainly(result)
    return 0 if result["status"] == "finished" else 1


def _require_text(option: str, value: str | None) -> None:
    """Arguments may carry bytes that are no UTF-8; they cannot be stored or shown."""
    try:
        (value or "").encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"Expected UTF-8 text in --{option}, found another encoding at character "
            f"{error.start + 1}; give the text in a UTF-8 file with --claim-file."
        ) from error


def _claim(given: argparse.Namespace) -> str:
    """The text to check, exactly as it was given."""
    if given.claim is not None:
        return str(given.claim)
    try:
        if given.claim_file == "-":
            return sys.stdin.buffer.read(CLAIM_MEGABYTES * MEGABYTE).decode("utf-8")
        from core.checking import read_whole

        return read_whole(Path(given.claim_file), CLAIM_MEGABYTES).decode("utf-8")
    except OSError as error:
        raise InputError(
            f"Expected a file with the claim at {given.claim_file}, found: {error.strerror}."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"Expected UTF-8 text in {given.claim_file}, found another encoding at byte "
            f"{error.start}; save it as UTF-8."
        ) from error


def _print_plainly(result: dict[str, object]) -> None:
    """The verdict in a few lines, for a person at a terminal."""
    label = result["label"] or result["status"]
    p = result["p_hallucinated"]
    sys.stdout.write(str(label).upper())
    sys.stdout.write(f"  p(hallucinated) = {p:.2f}\n" if isinstance(p, float) else "\n")
    sys.stdout.write(f"{result['rationale'] or result['cause_words']}\n")
    spans = result["spans"]
    for span in spans if isinstance(spans, list) else []:
        instead = f": the evidence says {span['instead']}" if span["instead"] else ""
        sys.stdout.write(f"  wrong: {span['text']}{instead}\n")


if __name__ == "__main__":
    sys.exit(main())
