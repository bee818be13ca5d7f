"""The commands `evaluate` (an engine, a recorded system or one tool on a set) and `reader`.

`evaluate --tool NAME` gives each row's whole response and question to the tool; if the tool cannot
read it or decides nothing, the row is unclear, and `causes` counts why. `reader` imports readers of
evidence into a home and calibrates them on labelled rows.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.baseline.assessment import Assessor
from core.baseline.entailment import (
    CALIBRATION,
    SHIPPED,
    OnnxReader,
    brought,
    calibration_of,
    choose_reader,
    reader_card,
    reader_folders,
    reader_in_use,
    require_reader,
)
from core.evaluation.datasets import load, rule_of
from core.evaluation.engine_runs import WEIGHTS, Tell, engine_digest, engine_of, require_weighed
from core.evaluation.evaluate import (
    EvaluationOrder,
    Measurement,
    answers,
    evaluate,
    result_of,
    sampled,
)
from core.evaluation.evaluate import labelled_rows as rows_of
from core.evaluation.files import GoldRow, GoldSpan, part_of
from core.evaluation.outcomes import FAILED, Outcomes, Prediction
from core.evaluation.recorded import Wanted, evaluate_recorded
from core.learning.evidence_calibration import (
    HALLUCINATED_ERROR,
    SUPPORTED_ERROR,
    EvidenceRow,
    MeasuredRow,
    answered_unseen,
    calibrations,
    cross_calibrated,
    figures,
    figures_by_material,
    limits,
    measured_rows,
    reliability_by_material,
    scored_statements,
)
from core.learning.training_set import taught
from core.llm.keys import Keys
from core.pipeline.streaming_input import Request, planned
from core.runtime.concurrency import Stop
from core.runtime.errors import ConfigError, InputError, ModelError
from core.schema.records import Case, Plan
from core.store import Store, open_store
from core.tools.registry import Bench, Tool, tool_named, use

Say = Callable[[str], None]
Out = Callable[[str | bytes], None]
WORDS = """\
Bring a reader of your own: a model of the Hugging Face Hub or of a folder that says whether a text
supports a claim (natural-language inference, or binary consistency), or that marks the words of an
answer that it does not support. It is exported to ONNX once and read on this computer."""
EXAMPLES = """\
examples:
  python -m core reader import MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli
  python -m core reader calibrate MoritzLaurer-DeBERTa-v3-base-mnli-fever-anli \\
      --dataset fever_symmetric --dataset qags --path data
  python -m core reader calibrate my-reader --decided-here
  python -m core reader use my-reader
  python -m core check --claim "…" --document facts.pdf --reader my-reader

exit code: 0 done; 2 no such model, too few rows or another bad input, with one line."""
FEWEST_ROWS, FEWEST_OF_LABEL = 60, 20
TELL_EVERY = 50
UNREAD, SAID_NOTHING = "the tool reads nothing here", "the tool says nothing"
OF_VARIANTS = ("auroc", "balanced_accuracy", "ece", "ece_null")
NAME = re.compile(r"[^\w.-]+")
KeysOf = Callable[[Request], Keys]


def add_commands(commands: Any, add_home: Any, whole: Callable[[str, int, int], int]) -> None:
    """Add the command `reader` with its actions."""
    parser = commands.add_parser(
        "reader",
        help="bring, calibrate and choose the model that reads evidence",
        description=WORDS,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, parser_class=type(parser))
    bring = actions.add_parser("import", help="export a model to ONNX and keep it in the home")
    bring.add_argument("name", metavar="NAME_OR_FOLDER")
    calibrate = actions.add_parser("calibrate", help="fit its probabilities on labelled rows")
    calibrate.add_argument("name", metavar="NAME")
    calibrate.add_argument(
        "--dataset", action="append", default=[], metavar="SET[:TASK]", help="a public set"
    )
    calibrate.add_argument("--path", metavar="DIR", help="the folder that holds the sets' folders")
    calibrate.add_argument(
        "--limit",
        metavar="N",
        type=lambda text: whole(text, 1, 1_000_000),
        default=300,
        help="most rows of each set (default: 300)",
    )
    calibrate.add_argument(
        "--decided-here", action="store_true", help="also learn from cases that people decided here"
    )
    choose = actions.add_parser("use", help=f"read with it from now on; “{SHIPPED}” goes back")
    choose.add_argument("name", metavar="NAME")
    show = actions.add_parser("list", help="the readers of this home")
    for action in (bring, calibrate, choose, show):
        action.add_argument("--json", action="store_true", help="print one JSON object")
        add_home(action)


def run_reader(given: argparse.Namespace, home: Path, say: Say, out: Out) -> int:
    """Run the chosen action, print its result and return 0."""
    action = {
        "import": _import_reader,
        "calibrate": _calibrate_reader,
        "use": _use_reader,
        "list": _list_readers,
    }[given.action]
    result, text = action(given, home, say)
    out((json.dumps(result, ensure_ascii=False) if given.json else text) + "\n")
    return 0


def _import_reader(options: argparse.Namespace, home: Path, say: Say) -> tuple[dict[str, Any], str]:
    name = brought(home, options.name)
    card = reader_card(reader_folders(home)[name])
    return card | {"name": name}, (
        f"{name}: {card['architecture']}, labels read as {card['labels']['kind']}. Calibrate it "
        f"next: python -m core reader calibrate {name} --dataset SET --path DIR"
    )


def _calibrate_reader(
    options: argparse.Namespace, home: Path, say: Say
) -> tuple[dict[str, Any], str]:
    rows = rows_of_sets(options.dataset, Path(options.path or "."), options.limit)
    if options.decided_here:
        with open_store(home) as store:
            rows += rows_decided_here(store)
    calibration = calibrate_reader(home, options.name, rows, say)
    own, limits = calibration["measured"]["all"], calibration["limits"]
    return calibration, (
        f"{options.name}: AUROC {own['auroc']:.3f}, balanced accuracy {own['balanced']:.3f}, ECE "
        f"{own['ece']:.3f} on {own['n']:,} statements; supported below "
        f"{limits['supported_below']:.2f}, hallucinated from {limits['hallucinated_from']:.2f}"
    )


def _use_reader(options: argparse.Namespace, home: Path, say: Say) -> tuple[dict[str, Any], str]:
    with open_store(home) as store:
        choose_reader(store, home, options.name)
    return {"reader": options.name}, f"Checks read with {options.name} from now on."


def _list_readers(options: argparse.Namespace, home: Path, say: Say) -> tuple[dict[str, Any], str]:
    with open_store(home) as store:
        used = reader_in_use(store)
    readers = {SHIPPED: {"calibrated": True, "used": used == SHIPPED}}
    for name, folder in reader_folders(home).items():
        readers[name] = {"calibrated": calibration_of(folder) is not None, "used": used == name}
    lines = [
        f"{'*' if own['used'] else ' '} {name}{'' if own['calibrated'] else ' (not calibrated)'}"
        for name, own in readers.items()
    ]
    return readers, "\n".join(lines)


def rows_of_sets(names: Sequence[str], folder: Path, limit: int) -> list[EvidenceRow]:
    """Return at most `limit` labelled rows with documents per set; a name is SET or SET:TASK.

    Rows of `dev20` are left out, so that the reader can be measured on them. Raises InputError if
    there is no such set, or its files are missing.
    """
    evidence_rows = []
    for name in names:
        dataset, _, task = name.partition(":")
        rows = [
            row
            for row in load(dataset, folder, task=task or None)
            if row.label and row.documents and part_of(row.group) != "dev"
        ]
        evidence_rows += [
            EvidenceRow(
                name,
                row.group,
                row.language,
                row.response,
                row.question,
                row.documents,
                row.label != "supported",
            )
            for row in sampled(rows, limit, 0)
        ]
    return evidence_rows


def rows_decided_here(store: Store) -> Iterator[EvidenceRow]:
    """Yield the cases of this home that people decided, with the texts of their sources."""
    for decided in taught(store):
        case = store.cases.get(decided.case_id)
        if case is None or decided.row.label == "unclear":
            continue
        sources = (store.readings.get(i, "") for i in (*case.documents, *case.images))
        texts = tuple(source.text for source in sources if source and source.text.strip())
        if texts:
            yield EvidenceRow(
                "decided here",
                case.id,
                case.language,
                case.response,
                case.question,
                texts,
                decided.row.label == "hallucinated",
            )


def calibrate_reader(
    home: Path, name: str, rows: Sequence[EvidenceRow], say: Say
) -> dict[str, Any]:
    """Fit a calibration on the rows and store it in the reader's folder.

    Raises InputError if it is the reader that ships, or there are too few rows, and ConfigError if
    the reader cannot be loaded.
    """
    folder = require_reader(home, name)
    if folder is None:
        raise InputError("Expected an imported reader, found the one that ships: it is calibrated.")
    _require_enough([row.wrong for row in rows])
    assessor = Assessor(OnnxReader(folder))
    measured: list[MeasuredRow] = []
    for measured_row in measured_rows(rows, assessor, home / "readers" / name):
        measured.append(measured_row)
        if len(measured) % TELL_EVERY == 0:
            say(f"{len(measured):,} of {len(rows):,} rows read")
    scored = scored_statements(measured, assessor.model)
    _require_enough(scored.wrong.tolist())
    fitted = calibrations(scored)
    p = cross_calibrated(scored, scored)
    low, high = limits(scored.wrong, p)
    calibration = {
        "calibration": fitted,
        "limits": {
            "supported_below": low,
            "hallucinated_from": high,
            "supported_error": SUPPORTED_ERROR,
            "hallucinated_error": HALLUCINATED_ERROR,
        },
        "rows": dict(Counter(row.name for row in rows)),
        "measured": {
            "all": figures(scored.wrong, p),
            "answered": answered_unseen(scored, p),
            "by_material": figures_by_material(scored, p),
            "reliability": reliability_by_material(scored, p, low, high),
        },
    }
    text = json.dumps(calibration, indent=1, ensure_ascii=False) + "\n"
    (folder / CALIBRATION).write_text(text, encoding="utf-8")
    return calibration


def _require_enough(rows: Sequence[bool]) -> None:
    """Raise InputError unless there are enough rows of each label; `rows` is True where wrong.

    Wrong responses of several statements give no statement labels, so they do not count.
    """
    wrong = sum(rows)
    if len(rows) < FEWEST_ROWS or min(wrong, len(rows) - wrong) < FEWEST_OF_LABEL:
        raise InputError(
            f"Expected at least {FEWEST_ROWS} labelled rows with documents, {FEWEST_OF_LABEL} of "
            f"each label; found {wrong} hallucinated and {len(rows) - wrong} supported. Give "
            "--dataset and --path, or decide more cases."
        )


def evaluate_tool(
    order: EvaluationOrder, name: str, tell: Tell, clock: Callable[[], float] = time.time
) -> dict[str, Any]:
    """Return the object that `python -m core evaluate --tool … --json` prints.

    Raises InputError if there is no such tool or set, or the tool is off here or reads nothing by
    itself.
    """
    tool, bench = tool_named(name), Bench(Stop())
    if why := tool.why_off(bench):
        raise InputError(why)
    if tool.reads is None:
        raise InputError(f"Expected a tool that reads statements by itself, found {name}.")
    rule = rule_of(order.dataset, order.task)
    rows = sampled(rows_of(order), order.limit, order.seed)
    tell(f"{order.dataset} {rule.task}: the tool {name} alone is measured, no engine is run")
    outcomes = Outcomes(rows, [predicted(tool, row, bench) for row in rows])
    measured = Measurement(outcomes, answers(rows), sum(one.is_failure for one in outcomes.said))
    by = {"roster": f"tool-{name}", "protocol": None, "engine": engine_digest()[:12]}
    return result_of(order, measured, asked={"tool": name}, by=by, now=clock())


def predicted(tool: Tool[Any], row: GoldRow, bench: Bench) -> Prediction:
    """Return the tool's prediction on one row; spans are offsets in the row's response."""
    started = time.monotonic()
    case = Case(row.id, "", row.response, row.question, language=row.language)
    tool_input = tool.reads(None, case) if tool.reads else None
    if tool_input is None:
        return Prediction("unclear", cause=UNREAD, seconds=time.monotonic() - started)
    result = use(tool, tool_input, bench)
    seconds = round(time.monotonic() - started, 4)
    if result.outcome == "failed":
        return Prediction("unclear", cause=FAILED, seconds=seconds)
    spans: tuple[GoldSpan, ...] = ()
    if result.label == "hallucinated" and result.start is not None and result.end is not None:
        spans = (GoldSpan(result.start, result.end, result.p or 1.0),)
    cause = SAID_NOTHING if result.label == "unclear" else ""
    return Prediction(result.label, result.p, spans, spans, cause, seconds, spans)


def plainly(result: Mapping[str, Any]) -> str:
    """Return the figures as a few lines for a terminal."""
    source = " ".join(str(result[key]) for key in ("dataset", "task", "split") if result[key])
    lines = [
        f"{source}: {result['rows']:,} rows in {result['groups']:,} groups, "
        f"{result['answered']:,} answered, {result['unclear']:,} unclear",
        *_format_figures(result["metrics"]),
    ]
    if result.get("weights"):
        lines.insert(1, f"  weights of answers: {result['weights']}")
    for name, by_name in result.get("variants", {}).items():
        lines += [name, *_format_figures({f: by_name[f] for f in OF_VARIANTS if f in by_name})]
    for name, by_name in result["trivial"].items():
        count = result["trivial_rows"][name]
        lines += [f"{name.replace('_', ' ')} ({count:,} rows)", *_format_figures(by_name)]
    if result["rows_per_second"]:
        lines.append(f"{result['rows_per_second']:.1f} rows a second")
    return "\n".join(lines) + "\n"


def _format_figures(by_name: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [
        f"  {name:18} {figure['value']:.3f}  ({figure['low']:.3f} to {figure['high']:.3f})"
        for name, figure in by_name.items()
    ]


def result_name(result: Mapping[str, Any]) -> str:
    """Return the file name of a result: set, task and split, and what differs from our defaults."""
    parts = [result["dataset"], result["task"], result["split"]]
    if result["roster"] != "builtin":
        parts.append(result["roster"])
    if result.get("protocol") not in (None, Plan().protocol):
        parts.append(result["protocol"])
    options = result.get("options") or {}
    # The seed is also that of the sample of rows, so it is not part of the name.
    parts += [f"{name}={value}" for name, value in options.items() if name != "seed"]
    if result.get("weights") not in (None, WEIGHTS[0]):
        parts.append(result["weights"].split(";")[0])
    return NAME.sub("_", "-".join(str(part) for part in parts if part)) + ".json"


def result_folder(folder: Path) -> Path:
    """Create the folder if it is missing, and return it; called before anything is measured.

    Raises ConfigError if it cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise _unwritable_error(folder, error) from error


def write_result(folder: Path, result: Mapping[str, Any]) -> Path:
    """Write the result to its file in the folder, replacing an earlier one; return the path.

    Raises ConfigError if the folder cannot be written to.
    """
    path = folder / result_name(result)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritable_error(folder, error) from error
    return path


def _unwritable_error(folder: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"Expected a folder that can be written at {folder}, found: {error.strerror}. "
        "Choose another with --keep."
    )


def run_evaluate(
    given: argparse.Namespace, home: Path, request: Request, keys_of: KeysOf, say: Say, out: Out
) -> int:
    """Measure and print the figures; return 0, or 1 if it failed or was stopped."""
    keep = None if given.keep is None else result_folder(Path(given.keep))
    try:
        result = _run_measurement(given, home, request, keys_of, say)
    except ModelError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Stopped. What is done is kept; the same command goes on from there.")
        return 1
    if keep is not None:
        write_result(keep, result)
    out(json.dumps(result, ensure_ascii=False) + "\n" if given.json else plainly(result))
    return 0


def _run_measurement(
    options: argparse.Namespace, home: Path, request: Request, keys_of: KeysOf, say: Say
) -> dict[str, Any]:
    order = EvaluationOrder(
        options.dataset,
        Path(options.path),
        task=options.task,
        split=options.split,
        limit=options.limit,
        seed=options.seed,
        trivial_limit=options.trivial_limit,
    )
    is_learned = options.weights == "learned"
    if is_learned and (options.tool is not None or options.system is not None):
        raise InputError(
            "Expected --weights learned with an engine, found it beside --tool or --system; leave "
            "one out."
        )
    if options.tool is not None:
        if options.system is not None:
            raise InputError("Expected --tool or --system, found both; leave one out.")
        return evaluate_tool(order, options.tool, say)
    if options.system is not None:
        fit_folder = None if options.fit is None else Path(options.fit)
        system = Wanted(options.system, options.detector, options.prompt, fit_folder)
        return evaluate_recorded(order, system, say)
    keys = keys_of(request)
    plan, notices = planned(home, request, keys)
    for notice in notices:
        say(notice)
    require_weighed(is_learned, [plan])
    return evaluate(order, engine_of(home, plan, keys, is_learned=is_learned), say)
