"""The command line: `python -m core check`, and the other commands that `--help` lists.

Exit 0 when a run finished, 1 when it failed or its result could not be written, 2 for bad input
with exactly one line on stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import os
import sqlite3
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from core.command import debate_options, parser_of, require_sense, require_words
from core.config import MEGABYTE, PROJECT_ROOT, home_from
from core.errors import InputError, ReviewError
from core.reviews import instead_words
from core.seats import BUILT_IN

if TYPE_CHECKING:
    from core.llm.keys import Keys
    from core.pipeline.checking import Request

BAD_INPUT = 2
CLAIM_MEGABYTES = 16


class OutputLost(Exception):
    """Standard output takes no more; the message is empty when its reader just went away."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    for stream in (sys.stdout, sys.stderr):  # quotes of any language, on any terminal
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        given = parser_of(__doc__).parse_args(arguments)
        require_sense(given)
        home = home_from(os.environ, given.home)
        return COMMANDS[given.command](given, home)
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


def _print(text: str | bytes) -> None:
    """Write to standard output now, not when the program ends: then it is too late to say so.

    Raises:
        OutputLost: it is closed, full, or read by nobody any more.
    """
    if sys.stdout is None:
        raise OutputLost("standard output is closed")
    try:
        if isinstance(text, bytes):
            sys.stdout.buffer.write(text)
        else:
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


def _doctor(_: argparse.Namespace, home: Path) -> int:
    from core.doctor import report

    lines = io.StringIO()
    code = report(home, lines)
    _print(lines.getvalue())
    return code


def _exchange(given: argparse.Namespace, home: Path) -> int:
    """Bring a file in, or write one."""
    from core.exchange.command_line import run_export, run_import

    run = run_import if given.command == "import" else run_export
    return run(given, home, _say, _print)


def _learn(given: argparse.Namespace, home: Path) -> int:
    """Train a version, or score old runs again under one."""
    from core.learning.command_line import run_rescore, run_retrain

    run = run_retrain if given.command == "retrain" else run_rescore
    return run(given, home, _say, _print)


def _reader(given: argparse.Namespace, home: Path) -> int:
    """Bring a reader, calibrate it, or choose which one is used."""
    from core.evaluation.command_line import run_reader

    return run_reader(given, home, _say, _print)


def _tools(given: argparse.Namespace, home: Path) -> int:
    """List the tools of an audit, or use one over the home's library and the web it chose."""
    from core.concurrency import Stop
    from core.llm.keys import keys_here
    from core.pipeline.tool_context import Place, bench_where
    from core.tools.command_line import run_tools

    place = Place(home, keys_here(os.environ, PROJECT_ROOT), Stop())
    return run_tools(given, bench_where(place), _say, _print)


def _say(words: str) -> None:
    """Lines on standard error as they are."""
    for line in words.splitlines():
        _complain(line)


def _check(given: argparse.Namespace, home: Path) -> int:
    """Check one claim in this process and print the outcome."""
    from core.pipeline.checking import check_once, planned

    request = _request(
        given,
        question=given.question,
        documents=[Path(name) for name in given.document],
        images=[Path(name) for name in given.image],
        role=given.role,
        instruction=given.instruction,
    )
    keys = _keys(request)
    planned(home, request, keys)  # before the claim is waited for
    if given.as_it_arrives:
        from core.pipeline.streaming_input import check_stream

        result, complaints = check_stream(home, request, keys, sys.stdin, _complain)
    else:
        claim = _claim(given)
        require_words(claim)
        result, complaints = check_once(home, replace(request, response=claim), time.time, keys)
    for complaint in complaints:
        _complain(complaint)
    _print(json.dumps(result, ensure_ascii=False) + "\n" if given.json else _plainly(result))
    return 0 if result["status"] == "finished" else 1


def _evaluate(given: argparse.Namespace, home: Path) -> int:
    """Measure an engine, a system or a tool on a labelled set."""
    from core.evaluation.command_line import run_evaluate

    return run_evaluate(given, home, _request(given), _keys, _complain, _print)


def _request(given: argparse.Namespace, **more: Any) -> Request:
    """What is asked for, with whoever is to check it."""
    from core.pipeline.checking import Request

    return Request(
        response="",
        roster=given.roster or BUILT_IN,
        protocol=given.protocol,
        model=given.model or "",
        api_base=given.api_base or "",
        token_cap=given.token_cap,
        options=debate_options(given),
        reader=given.reader or "",
        **more,
    )


def _keys(request: Request) -> Keys:
    """The keys of this machine; the built-in engine needs none and never looks."""
    from core.llm.keys import Keys, keys_here

    if request.roster == BUILT_IN and not request.model:
        return Keys({})
    return keys_here(os.environ, PROJECT_ROOT)


def _claim(given: argparse.Namespace) -> str:
    """The text to check, exactly as it was given."""
    if given.claim is not None:
        return str(given.claim)
    try:
        if given.claim_file == "-":
            if sys.stdin is None:
                raise InputError("Expected the claim on standard input, found it closed.")
            return sys.stdin.buffer.read(CLAIM_MEGABYTES * MEGABYTE).decode("utf-8")
        from core.pipeline.checking import read_whole

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
        leads = instead_words(in_evidence=span["in_evidence"])
        instead = f": {leads} {span['instead']}" if span["instead"] else ""
        lines.append(f"  wrong: {span['text']}{instead}")
    if result["for_people"]:
        lines.append("For people to decide: below what this project answers by itself.")
    models = result["models"]
    for model, used in models.items() if isinstance(models, dict) else ():
        lines.append(f"  {_used(model, used)}")
    return "\n".join(lines) + "\n"


def _used(model: str, used: dict[str, Any]) -> str:
    """What a model did, in words; a cost that is not known is never a zero."""
    from core.llm.limits import dollars_words

    cost = "cost unknown" if used["cost"] is None else dollars_words(used["cost"])
    calls = "1 call" if used["calls"] == 1 else f"{used['calls']} calls"
    taken = f" ({used['reused']} more answered by earlier runs)" if used["reused"] else ""
    return f"{model}: {calls}{taken}, {used['tokens_in'] + used['tokens_out']:,} tokens, {cost}"


COMMANDS = {
    "check": _check,
    "evaluate": _evaluate,
    "tools": _tools,
    "import": _exchange,
    "export": _exchange,
    "retrain": _learn,
    "rescore": _learn,
    "reader": _reader,
    "doctor": _doctor,
}

if __name__ == "__main__":
    code = main()
    gc.freeze()  # else Python looks through all that litellm made, for a second, before it ends
    sys.exit(code)
