"""What may be given on the command line, and what is refused before anything is done."""

from __future__ import annotations

import argparse
import unicodedata
from typing import NoReturn

from core.agents.rosters import SHIPPED
from core.debate import NAMES
from core.errors import InputError
from core.evaluation.command_line import add_commands as add_readers
from core.evaluation.engine_runs import add_commands as add_evaluation
from core.exchange.command_line import add_commands
from core.learning.command_line import add_commands as add_learning
from core.seats import DEBATE_NAMES, MOST_ROUNDS, PARTS, STYLES, DebateOptions
from core.tools.command_line import add_commands as add_tools

MOST_TOKENS = 1_000_000_000
CHECK_WORDS = """\
Check one claim against documents and images, and print the verdict.

Without --model and --roster the built-in engine checks: no key, no network, no language model.
With --model one language model plays every speaking role; documents are searched on this computer.
Keys are read from the environment and from .streamlit/secrets.toml, never from an argument."""
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
        """Refuse the arguments.

        Raises:
            InputError: always; one line.
        """
        raise InputError(f"{self.prog}: {message} (see --help)")


def parser_of(about: str | None) -> OneLineParser:
    """The parser of all commands; `about` stands above their list."""
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
    add_evaluation(commands, _add_home, _add_who, _whole)
    add_tools(commands, _add_home)
    add_commands(commands, _add_home)
    add_learning(commands, _add_home, _whole)
    add_readers(commands, _add_home, _whole)
    doctor = commands.add_parser("doctor", help="say what works here and what to do about the rest")
    _add_home(doctor)
    return parser


def require_sense(given: argparse.Namespace) -> None:
    """Refuse options that say nothing, cannot be kept, or go only with others.

    Raises:
        InputError: with the option's name.
    """
    _require_paths(given)
    _require_texts(given)
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
        "--as-it-arrives",
        action="store_true",
        help="with --protocol audit and --claim-file -: check each statement as soon as it is "
        "there, and say so on standard error",
    )
    parser.add_argument(
        "--seed", metavar="S", type=_seed, default=0, help="of a coin that is thrown"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_who(parser: argparse.ArgumentParser) -> None:
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--roster",
        metavar="NAME_OR_FILE",
        help=f"who checks: {', '.join(SHIPPED)}, "
        "one kept under Settings, or a roster's .json file (default: builtin)",
    )
    who.add_argument(
        "--model",
        help="a model for every speaking role, as litellm names it: "
        "gpt-4.1-mini, anthropic/claude-haiku-4-5, ollama_chat/llama3.1",
    )
    parser.add_argument(
        "--api-base", metavar="URL", help="the OpenAI-compatible address of --model"
    )
    parser.add_argument(
        "--token-cap",
        metavar="N",
        type=_token_cap,
        default=0,
        help="most tokens that models of no known price may use (default: as Settings say)",
    )
    parser.add_argument(
        "--reader",
        metavar="NAME_OR_FOLDER",
        help="what built-in agents read evidence with: “shipped”, one of `reader list`, or a model "
        "of the Hugging Face Hub or a folder, imported once (default: as Settings say)",
    )
    parser.add_argument(
        "--protocol",
        default="ceda",
        help="how they argue: " + ", ".join(NAMES) + "; or audit: statement by statement with "
        "tools, debate on what stays contested (default: ceda)",
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen of a protocol; each keeps to its own where nothing is said."""
    parser.add_argument("--rounds", metavar="N", type=_few, default=0, help="rounds of debate")
    parser.add_argument(
        "--samples", metavar="N", type=_few, default=0, help="judgements, of which most decide"
    )
    parser.add_argument(
        "--style", choices=STYLES, default="", help="how a single judge is asked (default: plain)"
    )
    parser.add_argument(
        "--swap", action="store_true", help="debaters change places; copmad is judged both ways"
    )
    parser.add_argument(
        "--then", choices=DEBATE_NAMES, default="", metavar="PROTOCOL",
        help="what an adaptive check goes on to",
    )  # fmt: skip
    parser.add_argument(
        "--without", choices=PARTS, action="append", default=[],
        help="hold sc_maks without that part, to see what the part is worth; one part at a time",
    )  # fmt: skip


def debate_options(given: argparse.Namespace) -> DebateOptions:
    """What was chosen of the protocol.

    Raises:
        InputError: several parts are to be left out: their worth could not be told apart.
    """
    parts = list(dict.fromkeys(given.without))
    if len(parts) > 1:
        raise InputError(f"Expected one part after --without, found {', '.join(parts)}: give one.")
    return DebateOptions(
        given.rounds, given.samples, given.style, given.swap, given.seed, given.then, *parts
    )


def _few(text: str) -> int:
    """A number of rounds or samples."""
    return _whole(text, 1, MOST_ROUNDS)


def _seed(text: str) -> int:
    """A seed."""
    return _whole(text, 0, 2**31 - 1)


def _token_cap(text: str) -> int:
    """A whole number of tokens."""
    return _whole(text, 1, MOST_TOKENS)


def _whole(text: str, least: int, most: int) -> int:
    """The number, if it is a whole one within its bounds."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
        found = text if text.isprintable() and len(text) <= 40 else "something else"
        raise argparse.ArgumentTypeError(
            f"expected a whole number from {least} to {most:,}, found “{found}”"
        )
    if not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(
            f"expected a whole number from {least} to {most:,}, found {int(text):,}"
        )
    return int(text)


def _require_paths(given: argparse.Namespace) -> None:
    """An empty path would be the folder that one stands in."""
    for option in PATHS:
        paths = getattr(given, option, None)
        if "" in (paths if isinstance(paths, list) else [paths]):
            name = option.replace("_", "-")
            raise InputError(f"Expected a path in --{name}, found an empty one; give one.")


def _require_texts(given: argparse.Namespace) -> None:
    """Options that say nothing, or go only with others."""
    for option, value in vars(given).items():
        if isinstance(value, str) and option not in (*PATHS, "name"):
            _require_text(option, value, given.command)
    for option in SAY_SOMETHING:
        value = getattr(given, option, None)
        told = value if isinstance(value, list) else [] if value is None else [value]
        if not all(text.strip() for text in told):
            name = option.replace("_", "-")
            raise InputError(f"Expected a text in --{name}, found an empty one; give one.")
    if getattr(given, "api_base", None) is not None and given.model is None:
        raise InputError(
            "Expected --model beside --api-base, found none; name the model that is asked there."
        )


def _require_text(option: str, value: str, command: str) -> None:
    """Arguments may carry bytes that are no UTF-8; they cannot be stored or shown."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        remedy = (
            "the text in a UTF-8 file with --claim-file" if command == "check" else "it as UTF-8"
        )
        raise InputError(
            f"Expected UTF-8 text in --{option}, found another encoding at character "
            f"{error.start + 1}; give {remedy}."
        ) from error


def require_words(claim: str) -> None:
    """Refuse a claim of nothing that can be seen."""
    if all(unicodedata.category(char) in UNSEEN for char in claim):
        raise InputError(
            "Expected a claim to check, found an empty text or one that cannot be seen; give one."
        )
