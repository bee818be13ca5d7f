"""The command line: `python -m core check|doctor`.

Exit 0 when a run finished, 1 when it failed or its result could not be written, 2 for bad input
with exactly one line on stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sqlite3
import sys
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from core.config import MEGABYTE, home_from
from core.errors import InputError, ReviewError

BAD_INPUT = 2
CLAIM_MEGABYTES = 16
# Spaces, controls and characters that only shape others: a text of these alone says nothing.
UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})


class OutputLost(Exception):
    """Standard output takes no more; the message is empty when its reader just went away."""


class OneLineParser(argparse.ArgumentParser):
    """Argument errors take one line, like every other bad input."""

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with 2."""
        _complain(f"{self.prog}: {message} (see --help)")
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
        _require_paths(given)
        home = home_from(os.environ, given.home)
        if given.command == "doctor":
            return _doctor(home)
        return _check(given, home)
    except ReviewError as error:
        _complain(str(error))
        return BAD_INPUT
    except OutputLost as error:
        if str(error):
            _complain(f"The result cannot be written: {error}.")
        return 1
    except (OSError, sqlite3.Error) as error:
        _complain(f"The home cannot be read or written: {error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        _complain("Stopped.")
        return 1


def _complain(words: str) -> None:
    """One line on standard error; where nobody can read it, the exit code alone tells."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(" ".join(words.split()) + "\n")
            sys.stderr.flush()
        except OSError:
            _silence(sys.stderr)


def _print(text: str) -> None:
    """Write to standard output now, not when the program ends: then it is too late to say so.

    Raises:
        OutputLost: it is closed, full, or read by nobody any more.
    """
    if sys.stdout is None:
        raise OutputLost("standard output is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        _silence(sys.stdout)
        why = "" if isinstance(error, BrokenPipeError) else error.strerror or str(error)
        raise OutputLost(why) from error


def _silence(stream: TextIO) -> None:
    """What the stream still holds goes nowhere, or Python would complain of it at the end."""
    with contextlib.suppress(OSError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


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


def _doctor(home: Path) -> int:
    from core.doctor import report

    lines = io.StringIO()
    code = report(home, lines)
    _print(lines.getvalue())
    return code


def _check(given: argparse.Namespace, home: Path) -> int:
    """Check one claim in this process and print the outcome."""
    from core.checking import Request, check_once

    for option in ("claim", "question", "role", "instruction", "roster", "protocol"):
        _require_text(option, getattr(given, option))
    claim = _claim(given)
    _require_words(claim)
    request = Request(
        response=claim,
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
        _complain(complaint)
    _print(json.dumps(result, ensure_ascii=False) + "\n" if given.json else _plainly(result))
    return 0 if result["status"] == "finished" else 1


def _require_paths(given: argparse.Namespace) -> None:
    """An empty path would be the folder that one stands in."""
    for option in ("home", "claim_file", "document", "image"):
        paths = getattr(given, option, None)
        if "" in (paths if isinstance(paths, list) else [paths]):
            name = option.replace("_", "-")
            raise InputError(f"Expected a path in --{name}, found an empty one; give one.")


def _require_words(claim: str) -> None:
    if all(unicodedata.category(char) in UNSEEN for char in claim):
        raise InputError(
            "Expected a claim to check, found an empty text or one that cannot be seen; give one."
        )


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
            if sys.stdin is None:
                raise InputError("Expected the claim on standard input, found it closed.")
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


def _plainly(result: dict[str, object]) -> str:
    """The verdict in a few lines, for a person at a terminal."""
    label = result["label"] or result["status"]
    p = result["p_hallucinated"]
    sure = f"  p(hallucinated) = {p:.2f}" if isinstance(p, float) else ""
    lines = [f"{str(label).upper()}{sure}", f"{result['rationale'] or result['cause_words']}"]
    spans = result["spans"]
    for span in spans if isinstance(spans, list) else []:
        instead = f": the evidence says {span['instead']}" if span["instead"] else ""
        lines.append(f"  wrong: {span['text']}{instead}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
