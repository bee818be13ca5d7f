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
import signal
import sqlite3
import sys
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from core.agents.roster_files import LEAST_WINDOW
from core.agents.rosters import SHIPPED_ROSTERS
from core.debate import PROTOCOL_NAMES
from core.runtime.config import MEGABYTE, PROJECT_ROOT, resolve_home
from core.runtime.errors import InputError, ReviewError
from core.schema.reviews import introduce_correction
from core.schema.rosters import (
    ABLATION_PARTS,
    BUILT_IN_ROSTER,
    DEBATE_PROTOCOL_NAMES,
    JUDGE_STYLES,
    MAX_CONCURRENCY,
    MAX_ROUNDS,
    DebateOptions,
)

if TYPE_CHECKING:
    from core.llm.keys import Keys
    from core.pipeline.single_check import CheckRequest

MOST_TOKENS = 1_000_000_000
CHECK_WORDS = """\
Check one claim against documents and images, and print the verdict.

Without --model and --roster the built-in engine checks: no key, no network, no language model.
With --model one language model plays every speaking role; documents are searched on this computer.
Keys are read from the environment and from .streamlit/secrets.toml, never from an argument.
While large files are read and indexed, standard error says how much is done."""
CHECK_EXAMPLES = """\
examples:
  python -m core check --claim "The tower is 412 m tall." --document facts.pdf
  python -m core check --claim-file answer.txt --document facts.pdf --model gpt-4.1-mini
  python -m core check --claim "…" --image chart.png --model openai/qwen2.5-vl \\
      --api-base http://127.0.0.1:8000/v1 --token-cap 50000
  python -m core check --claim "…" --document facts.pdf --roster ceda --json

exit code: 0 the run finished, also when its verdict is unclear; 1 it failed; 2 bad input or a
missing key, with one line that says so."""
PATHS = (
    "home", "claim_file", "document", "image", "path", "keep", "file", "out", "sources", "fit",
)  # fmt: skip
SAY_SOMETHING = (
    "project", "roster", "model", "api_base", "dataset", "split", "task", "encoder", "version",
    "by", "tool", "input", "reader", "name",
)  # fmt: skip
# Spaces, controls and characters that only shape others: a text of these alone says nothing.
UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})


class OneLineParser(argparse.ArgumentParser):
    """Argument errors take one line, like every other bad input."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments in one line (InputError)."""
        raise InputError(f"{self.prog}: {message} (see --help)")


def build_parser(about: str | None, arguments: Sequence[str]) -> OneLineParser:
    """Return the parser of all commands, or of `check` alone if that is the first argument.

    A check needs little of what the other commands import. `about` stands above their list.
    """
    parser = OneLineParser(prog="python -m core", description=about)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    check = commands.add_parser(
        "check",
        help="check one claim against documents and images",
        description=CHECK_WORDS,
        epilog=CHECK_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_check(check)
    _add_home(check)
    if arguments[:1] == ["check"]:
        return parser
    from core.evaluation.benchmark_commands import add_commands as add_benchmarks
    from core.evaluation.command_line import add_commands as add_readers
    from core.evaluation.engine_runs import add_commands as add_evaluation
    from core.evaluation.grid_commands import add_commands as add_grids
    from core.exchange.command_line import add_commands
    from core.learning.command_line import add_commands as add_learning
    from core.tools.registry import add_commands as add_tools

    add_evaluation(commands, _add_home, _add_who, _whole)
    add_grids(commands, _add_home, _add_engine, _whole)
    add_benchmarks(commands, _add_home, _whole)
    add_tools(commands, _add_home)
    add_commands(commands, _add_home)
    add_learning(commands, _add_home, _whole)
    add_readers(commands, _add_home, _whole)
    doctor = commands.add_parser("doctor", help="say what works here and what to do about the rest")
    _add_home(doctor)
    return parser


def require_sense(given: argparse.Namespace) -> None:
    """Refuse options that say nothing, cannot be kept, or go only with others (InputError)."""
    for option, value in vars(given).items():
        texts = value if isinstance(value, list) else [] if value is None else [value]
        name = option.replace("_", "-")
        if option in PATHS and "" in texts:  # it would be the folder that one stands in
            raise InputError(f"Expected a path in --{name}, found an empty one; give one.")
        if option in SAY_SOMETHING and not all(text.strip() for text in texts):
            raise InputError(f"Expected a text in --{name}, found an empty one; give one.")
        if isinstance(value, str) and option not in (*PATHS, "name"):
            _require_utf8(option, value, given.command)
    for option in ("api_base", "window", "seconds", "concurrency"):
        if getattr(given, option, None) and given.model is None:
            raise InputError(
                f"Expected --model beside --{option.replace('_', '-')}, found none; name the "
                "model that is asked."
            )
    if getattr(given, "as_it_arrives", False) and given.claim_file != "-":
        raise InputError(
            "Expected --claim-file - beside --as-it-arrives, found none; only standard input "
            "arrives bit by bit."
        )


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
    _add_who(parser)
    parser.add_argument(
        "--as-it-arrives", action="store_true",
        help="with --protocol audit and --claim-file -: check each statement as soon as it is "
        "there, and say so on standard error",
    )  # fmt: skip
    coin = "of a coin that is thrown"
    parser.add_argument("--seed", metavar="S", type=_number(0, 2**31 - 1), default=0, help=coin)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_who(parser: argparse.ArgumentParser) -> None:
    _add_engine(parser)
    _add_protocol(parser)


def _add_engine(parser: argparse.ArgumentParser) -> None:
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--roster", metavar="NAME_OR_FILE",
        help=f"who checks: {', '.join(SHIPPED_ROSTERS)}, "
        "one kept under Settings, or a roster's .json file (default: builtin)",
    )  # fmt: skip
    who.add_argument(
        "--model", help="a model for every speaking role, as litellm names it: "
        "gpt-4.1-mini, anthropic/claude-haiku-4-5, ollama_chat/llama3.1",
    )  # fmt: skip
    parser.add_argument(
        "--api-base", metavar="URL", help="the OpenAI-compatible address of --model"
    )
    parser.add_argument(
        "--window", metavar="TOKENS", type=_number(LEAST_WINDOW, MOST_TOKENS), default=0,
        help="how much --model reads (default: as its server or litellm says)",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", metavar="S", type=_number(1, 3600), default=0,
        help="the longest silence of --model before its call has failed (default: 60)",
    )  # fmt: skip
    parser.add_argument(
        "--concurrency", metavar="N", type=_number(1, MAX_CONCURRENCY), default=0,
        help="calls that the server of --model answers at once (default: as it tells)",
    )  # fmt: skip
    parser.add_argument(
        "--token-cap", metavar="N", type=_number(1, MOST_TOKENS), default=0,
        help="most tokens that models of no known price may use (default: as Settings say)",
    )  # fmt: skip
    parser.add_argument(
        "--reader", metavar="NAME_OR_FOLDER",
        help="what built-in agents read evidence with: “shipped”, one of `reader list`, or a model "
        "of the Hugging Face Hub or a folder, imported once (default: as Settings say)",
    )  # fmt: skip


def _add_protocol(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--protocol", default="ceda",
        help="how they argue: " + ", ".join(PROTOCOL_NAMES) + "; or audit: statement by statement "
        "with tools, debate on what stays contested (default: ceda)",
    )  # fmt: skip
    few = _number(1, MAX_ROUNDS)
    parser.add_argument("--rounds", metavar="N", type=few, default=0, help="rounds of debate")
    parser.add_argument(
        "--samples", metavar="N", type=few, default=0, help="judgements, of which most decide"
    )
    parser.add_argument(
        "--style",
        choices=JUDGE_STYLES,
        default="",
        help="how a single judge is asked (default: plain)",
    )
    parser.add_argument(
        "--swap", action="store_true", help="debaters change places; copmad is judged both ways"
    )
    parser.add_argument(
        "--then", choices=DEBATE_PROTOCOL_NAMES, default="", metavar="PROTOCOL",
        help="what an adaptive check goes on to",
    )  # fmt: skip
    parser.add_argument(
        "--without", choices=ABLATION_PARTS, action="append", default=[],
        help="hold sc_maks without that part, to see what the part is worth; one part at a time",
    )  # fmt: skip


def _number(least: int, most: int) -> Callable[[str], int]:
    return partial(_whole, least=least, most=most)


def _whole(text: str, least: int, most: int) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if is_number and least <= int(text) <= most:
        return int(text)
    found = f"“{text if text.isprintable() and len(text) <= 40 else 'something else'}”"
    if is_number:
        found = f"{int(text):,}"
    raise argparse.ArgumentTypeError(
        f"expected a whole number from {least} to {most:,}, found {found}"
    )


def _require_utf8(option: str, value: str, command: str) -> None:
    """Arguments may carry bytes that are no UTF-8; they cannot be stored or shown."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        text = "the text in a UTF-8 file with --claim-file" if command == "check" else "it as UTF-8"
        raise InputError(
            f"Expected UTF-8 text in --{option}, found another encoding at character "
            f"{error.start + 1}; give {text}."
        ) from error


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
        words = sys.argv[1:] if arguments is None else list(arguments)
        if arguments is None:  # clusters end what runs on them so
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        given = build_parser(__doc__, words).parse_args(words)
        require_sense(given)
        home = resolve_home(os.environ, given.home)
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
    from core.pipeline.doctor import run_doctor

    code, told = run_doctor(home)
    _print(told)
    return code


def _exchange(given: argparse.Namespace, home: Path) -> int:
    from core.exchange.command_line import run_export, run_import

    run = run_import if given.command == "import" else run_export
    return run(given, home, _say, _print)


def _learn(given: argparse.Namespace, home: Path) -> int:
    from core.learning.command_line import run_rescore, run_retrain

    run = run_retrain if given.command == "retrain" else run_rescore
    return run(given, home, _say, _print)


def _reader(given: argparse.Namespace, home: Path) -> int:
    from core.evaluation.command_line import run_reader

    return run_reader(given, home, _say, _print)


def _tools(given: argparse.Namespace, home: Path) -> int:
    """List the tools of an audit, or use one over the home's library and the web it chose."""
    from core.llm.keys import load_keys
    from core.pipeline.tool_context import build_tool_context
    from core.runtime.concurrency import StopSignal
    from core.tools.registry import run_tools

    return run_tools(
        given,
        build_tool_context(home, load_keys(os.environ, PROJECT_ROOT), StopSignal()),
        _say,
        _print,
    )


def _say(words: str) -> None:
    for line in words.splitlines():
        _complain(line)


def _check(given: argparse.Namespace, home: Path) -> int:
    from core.llm.providers import import_client
    from core.pipeline.single_check import check_once, check_stream, plan_check

    request = _request(
        given,
        question=given.question,
        documents=[Path(name) for name in given.document],
        images=[Path(name) for name in given.image],
        role=given.role,
        instruction=given.instruction,
    )
    keys = _keys(request)
    plan, _ = plan_check(home, request, keys)  # before the claim is waited for
    agents = [a for _, a in plan.sheet.agents_by_role() if a.model] if plan.sheet else []
    if agents:  # a second, which passes while the files are read
        Thread(target=import_client, args=agents[:1], daemon=True).start()
    if given.as_it_arrives:
        result, complaints = check_stream(home, request, keys, sys.stdin, _complain)
    else:
        claim = _claim(given)
        if all(unicodedata.category(char) in UNSEEN for char in claim):
            raise InputError(
                "Expected a claim to check, found an empty text or one that cannot be seen; "
                "give one."
            )
        asked = replace(request, response=claim)
        result, complaints = check_once(home, asked, time.time, keys, _complain)
    for complaint in complaints:
        _complain(complaint)
    _print(json.dumps(result, ensure_ascii=False) + "\n" if given.json else _plainly(result))
    return 0 if result["status"] == "finished" else 1


def _evaluate(given: argparse.Namespace, home: Path) -> int:
    from core.evaluation.command_line import run_evaluate

    return run_evaluate(given, home, _request(given), _keys, _complain, _print)


def _grid(given: argparse.Namespace, home: Path) -> int:
    from core.evaluation.grid_commands import run_grids

    return run_grids(given, home, _request, _keys, _complain, _print)


def _benchmark(given: argparse.Namespace, home: Path) -> int:
    from core.evaluation.benchmark_commands import run_benchmarks

    return run_benchmarks(given, home, _keys, _complain, _print)


def _request(given: argparse.Namespace, **more: Any) -> CheckRequest:
    """What is asked for, with whoever is to check it. Raises InputError: two parts are left out."""
    from core.pipeline.single_check import CheckRequest

    parts = list(dict.fromkeys(given.without))
    if len(parts) > 1:
        raise InputError(f"Expected one part after --without, found {', '.join(parts)}: give one.")
    return CheckRequest(
        response="",
        roster=given.roster or BUILT_IN_ROSTER,
        protocol=given.protocol,
        model=given.model or "",
        api_base=given.api_base or "",
        window=given.window,
        seconds=given.seconds,
        concurrency=given.concurrency,
        token_cap=given.token_cap,
        options=DebateOptions(
            given.rounds, given.samples, given.style, given.swap, given.seed, given.then, *parts
        ),
        reader=given.reader or "",
        **more,
    )


def _keys(request: CheckRequest) -> Keys:
    """The keys of this machine; the built-in engine needs none and never looks."""
    from core.llm.keys import Keys, load_keys

    if request.roster == BUILT_IN_ROSTER and not request.model:
        return Keys({})
    return load_keys(os.environ, PROJECT_ROOT)


def _claim(given: argparse.Namespace) -> str:
    if given.claim is not None:
        return str(given.claim)
    try:
        if given.claim_file == "-":
            if sys.stdin is None:
                raise InputError("Expected the claim on standard input, found it closed.")
            return sys.stdin.buffer.read(CLAIM_MEGABYTES * MEGABYTE).decode("utf-8")
        from core.pipeline.single_check import read_file_bytes

        return read_file_bytes(Path(given.claim_file), CLAIM_MEGABYTES).decode("utf-8")
    except OSError as error:
        raise InputError(
            f"Expected a file with the claim at {given.claim_file}, found: {error.strerror}."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"Expected UTF-8 text in {given.claim_file}, found another encoding at byte "
            f"{error.start}; save it as UTF-8."
        ) from error


def _plainly(result: dict[str, Any]) -> str:
    """The verdict in a few lines, for a person at a terminal; an unknown cost is never a zero."""
    from core.llm.limits import format_dollars

    p = result["p_hallucinated"]
    sure = f"  p(hallucinated) = {p:.2f}" if isinstance(p, float) else ""
    lines = [f"{str(result['label'] or result['status']).upper()}{sure}"]
    lines.append(f"{result['rationale'] or result['cause_words']}")
    for span in result["spans"]:
        leads = introduce_correction(in_evidence=span["in_evidence"])
        instead = f": {leads} {span['instead']}" if span["instead"] else ""
        lines.append(f"  wrong: {span['text']}{instead}")
    if result["for_people"]:
        lines.append("For people to decide: below what this project answers by itself.")
    for model, used in result["models"].items():
        cost = "cost unknown" if used["cost"] is None else format_dollars(used["cost"])
        calls = "1 call" if used["calls"] == 1 else f"{used['calls']} calls"
        taken = f" ({used['reused']} more answered by earlier runs)" if used["reused"] else ""
        tokens = used["tokens_in"] + used["tokens_out"]
        lines.append(f"  {model}: {calls}{taken}, {tokens:,} tokens, {cost}")
    return "\n".join(lines) + "\n"


COMMANDS = {
    "check": _check,
    "evaluate": _evaluate,
    "grid": _grid,
    "benchmark": _benchmark,
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
