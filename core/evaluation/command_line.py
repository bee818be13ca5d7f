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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.baseline.assessment import Assessor
from core.baseline.entailment import (
    CALIBRATION_FILE,
    SHIPPED_READER,
    OnnxReader,
    choose_reader,
    find_reader_folder,
    import_if_new,
    list_reader_folders,
    load_reader_choice,
    read_reader_calibration,
    read_reader_card,
)
from core.debate.protocols import PROTOCOLS
from core.evaluation.dataset_files import GoldRow, GoldSpan, assign_part
from core.evaluation.datasets import get_task_rule, load_dataset_rows
from core.evaluation.engine_runs import (
    WEIGHT_CHOICES,
    ProgressWriter,
    build_engine,
    compute_engine_digest,
    require_weighed_protocol,
)
from core.evaluation.evaluate import (
    EvaluationRequest,
    Measurement,
    build_result,
    build_trivial_outcomes,
    evaluate_engine,
    parse_ways,
    sample_rows,
)
from core.evaluation.evaluate import load_labelled_rows as rows_of
from core.evaluation.outcomes import FAILED_CAUSE, Outcomes, Prediction
from core.evaluation.protocols import compare_protocols, format_comparison
from core.evaluation.recorded_systems import RecordedSystemRequest, evaluate_recorded
from core.evaluation.runner import take_runner_options
from core.learning.evidence_calibration import (
    MAX_HALLUCINATED_ERROR,
    MAX_SUPPORTED_ERROR,
    EvidenceRow,
    MeasuredRow,
    choose_limits,
    compute_evidence_figures,
    compute_figures_by_material,
    compute_reliability_by_material,
    cross_calibrate,
    fit_calibrations,
    measure_coverage,
    measure_rows,
    score_statements,
)
from core.learning.metrics import MIN_GROUPS
from core.learning.training_set import attribute_rows
from core.llm.keys import Keys
from core.llm.rate_limit import require_used_rates
from core.pipeline.single_check import CheckRequest, plan_check
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ConfigError, InputError, ModelError
from core.schema.records import Case, Plan
from core.schema.rosters import BUILT_IN_ROSTER, READER_PROTOCOLS
from core.store import Store, open_store
from core.tools.registry import Tool, ToolContext, get_tool, use_tool

MessageWriter = Callable[[str], None]
OutputWriter = Callable[[str | bytes], None]
READER_DESCRIPTION = """\
Bring a reader of your own: a model of the Hugging Face Hub or of a folder that says whether a text
supports a claim (natural-language inference, or binary consistency), or that marks the words of an
answer that it does not support. It is exported to ONNX once and read on this computer."""
READER_EXAMPLES = """\
examples:
  python -m core reader import MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli
  python -m core reader calibrate MoritzLaurer-DeBERTa-v3-base-mnli-fever-anli \\
      --dataset fever_symmetric --dataset qags --path data
  python -m core reader calibrate my-reader --decided-here
  python -m core reader use my-reader
  python -m core check --claim "…" --document facts.pdf --reader my-reader

exit code: 0 done; 2 no such model, too few rows or another bad input, with one line."""
MIN_ROWS, MIN_ROWS_PER_LABEL = 60, 20
ROWS_PER_NOTICE = 50
TOOL_READS_NOTHING, TOOL_SAYS_NOTHING = "the tool reads nothing here", "the tool says nothing"
VARIANT_FIGURES = ("auroc", "balanced_accuracy", "ece", "ece_null")
UNSAFE_NAME_CHARS = re.compile(r"[^\w.-]+")
KeyLoader = Callable[[CheckRequest], Keys]


def add_commands(commands: Any, add_home: Any, whole: Callable[[str, int, int], int]) -> None:
    """Add the command `reader` with its actions."""
    parser = commands.add_parser(
        "reader",
        help="bring, calibrate and choose the model that reads evidence",
        description=READER_DESCRIPTION,
        epilog=READER_EXAMPLES,
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
    choose = actions.add_parser(
        "use", help=f"read with it from now on; “{SHIPPED_READER}” goes back"
    )
    choose.add_argument("name", metavar="NAME")
    show = actions.add_parser("list", help="the readers of this home")
    for action in (bring, calibrate, choose, show):
        action.add_argument("--json", action="store_true", help="print one JSON object")
        add_home(action)


def run_reader(given: argparse.Namespace, home: Path, say: MessageWriter, out: OutputWriter) -> int:
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


def _import_reader(
    options: argparse.Namespace, home: Path, say: MessageWriter
) -> tuple[dict[str, Any], str]:
    name = import_if_new(home, options.name)
    card = read_reader_card(list_reader_folders(home)[name])
    return card | {"name": name}, (
        f"{name}: {card['architecture']}, labels read as {card['labels']['kind']}. Calibrate it "
        f"next: python -m core reader calibrate {name} --dataset SET --path DIR"
    )


def _calibrate_reader(
    options: argparse.Namespace, home: Path, say: MessageWriter
) -> tuple[dict[str, Any], str]:
    rows = load_calibration_rows(options.dataset, Path(options.path or "."), options.limit)
    if options.decided_here:
        with open_store(home) as store:
            rows += load_decided_evidence(store)
    calibration = calibrate_reader(home, options.name, rows, say)
    own, limits = calibration["measured"]["all"], calibration["limits"]
    return calibration, (
        f"{options.name}: AUROC {own['auroc']:.3f}, balanced accuracy {own['balanced']:.3f}, ECE "
        f"{own['ece']:.3f} on {own['n']:,} statements; supported below "
        f"{limits['supported_below']:.2f}, hallucinated from {limits['hallucinated_from']:.2f}"
    )


def _use_reader(
    options: argparse.Namespace, home: Path, say: MessageWriter
) -> tuple[dict[str, Any], str]:
    with open_store(home) as store:
        choose_reader(store, home, options.name)
    return {"reader": options.name}, f"Checks read with {options.name} from now on."


def _list_readers(
    options: argparse.Namespace, home: Path, say: MessageWriter
) -> tuple[dict[str, Any], str]:
    with open_store(home) as store:
        used = load_reader_choice(store)
    readers = {SHIPPED_READER: {"calibrated": True, "used": used == SHIPPED_READER}}
    for name, folder in list_reader_folders(home).items():
        readers[name] = {
            "calibrated": read_reader_calibration(folder) is not None,
            "used": used == name,
        }
    lines = [
        f"{'*' if own['used'] else ' '} {name}{'' if own['calibrated'] else ' (not calibrated)'}"
        for name, own in readers.items()
    ]
    return readers, "\n".join(lines)


def load_calibration_rows(names: Sequence[str], folder: Path, limit: int) -> list[EvidenceRow]:
    """Return at most `limit` labelled rows with documents per set; a name is SET or SET:TASK.

    Rows of `dev20` are left out, so that the reader can be measured on them. Raises InputError if
    there is no such set, or its files are missing.
    """
    evidence_rows = []
    for name in names:
        dataset, _, task = name.partition(":")
        rows = [
            row
            for row in load_dataset_rows(dataset, folder, task=task or None)
            if row.label and row.documents and assign_part(row.group) != "dev"
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
            for row in sample_rows(rows, limit, 0)
        ]
    return evidence_rows


def load_decided_evidence(store: Store) -> Iterator[EvidenceRow]:
    """Yield the cases of this home that people decided, with the texts of their sources."""
    for decided in attribute_rows(store):
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
    home: Path, name: str, rows: Sequence[EvidenceRow], say: MessageWriter
) -> dict[str, Any]:
    """Fit a calibration on the rows and store it in the reader's folder.

    Raises InputError if it is the reader that ships, or there are too few rows, and ConfigError if
    the reader cannot be loaded.
    """
    folder = find_reader_folder(home, name)
    if folder is None:
        raise InputError("Expected an imported reader, found the one that ships: it is calibrated.")
    _require_enough([row.wrong for row in rows])
    assessor = Assessor(OnnxReader(folder))
    measured: list[MeasuredRow] = []
    for measured_row in measure_rows(rows, assessor, home / "readers" / name):
        measured.append(measured_row)
        if len(measured) % ROWS_PER_NOTICE == 0:
            say(f"{len(measured):,} of {len(rows):,} rows read")
    scored = score_statements(measured, assessor.model)
    _require_enough(scored.wrong.tolist())
    fitted = fit_calibrations(scored)
    p = cross_calibrate(scored, scored)
    low, high = choose_limits(scored.wrong, p)
    calibration = {
        "calibration": fitted,
        "limits": {
            "supported_below": low,
            "hallucinated_from": high,
            "supported_error": MAX_SUPPORTED_ERROR,
            "hallucinated_error": MAX_HALLUCINATED_ERROR,
        },
        "rows": dict(Counter(row.name for row in rows)),
        "measured": {
            "all": compute_evidence_figures(scored.wrong, p),
            "answered": measure_coverage(scored, p),
            "by_material": compute_figures_by_material(scored, p),
            "reliability": compute_reliability_by_material(scored, p, low, high),
        },
    }
    text = json.dumps(calibration, indent=1, ensure_ascii=False) + "\n"
    (folder / CALIBRATION_FILE).write_text(text, encoding="utf-8")
    return calibration


def _require_enough(rows: Sequence[bool]) -> None:
    """Raise InputError unless there are enough rows of each label; `rows` is True where wrong.

    Wrong responses of several statements give no statement labels, so they do not count.
    """
    wrong = sum(rows)
    if len(rows) < MIN_ROWS or min(wrong, len(rows) - wrong) < MIN_ROWS_PER_LABEL:
        raise InputError(
            f"Expected at least {MIN_ROWS} labelled rows with documents, {MIN_ROWS_PER_LABEL} of "
            f"each label; found {wrong} hallucinated and {len(rows) - wrong} supported. Give "
            "--dataset and --path, or decide more cases."
        )


def evaluate_tool(order: EvaluationRequest, name: str, tell: ProgressWriter) -> dict[str, Any]:
    """Return the object that `python -m core evaluate --tool … --json` prints.

    Raises InputError if there is no such tool or set, or the tool is off here or reads nothing by
    itself.
    """
    tool, tool_context = get_tool(name), ToolContext(StopSignal())
    if why := tool.why_off(tool_context):
        raise InputError(why)
    if tool.reads is None:
        raise InputError(f"Expected a tool that reads statements by itself, found {name}.")
    rule = get_task_rule(order.dataset, order.task)
    rows = sample_rows(rows_of(order), order.limit, order.seed)
    tell(f"{order.dataset} {rule.task}: the tool {name} alone is measured, no engine is run")
    outcomes = Outcomes(rows, [predict_with_tool(tool, row, tool_context) for row in rows])
    by = {"tool": name, "roster": f"tool-{name}", "protocol": None}
    by["engine"] = compute_engine_digest()[:12]
    return build_result(order, Measurement(outcomes, build_trivial_outcomes(rows)), by)


def predict_with_tool(tool: Tool[Any], row: GoldRow, tool_context: ToolContext) -> Prediction:
    """Return the tool's prediction on one row; spans are offsets in the row's response."""
    started = time.monotonic()
    case = Case(row.id, "", row.response, row.question, language=row.language)
    tool_input = tool.reads(None, case) if tool.reads else None
    if tool_input is None:
        return Prediction("unclear", cause=TOOL_READS_NOTHING, seconds=time.monotonic() - started)
    result = use_tool(tool, tool_input, tool_context)
    seconds = round(time.monotonic() - started, 4)
    if result.outcome == "failed":
        return Prediction("unclear", cause=FAILED_CAUSE, seconds=seconds)
    spans: tuple[GoldSpan, ...] = ()
    if result.label == "hallucinated" and result.start is not None and result.end is not None:
        spans = (GoldSpan(result.start, result.end, result.p or 1.0),)
    cause = TOOL_SAYS_NOTHING if result.label == "unclear" else ""
    return Prediction(result.label, result.p, spans, spans, cause, seconds, spans)


def format_result(result: Mapping[str, Any]) -> str:
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
        lines += [name, *_format_figures({f: by_name[f] for f in VARIANT_FIGURES if f in by_name})]
    for name, by_name in result["trivial"].items():
        count = result["trivial_rows"][name]
        lines += [f"{name.replace('_', ' ')} ({count:,} rows)", *_format_figures(by_name)]
    if result["rows_per_second"]:
        lines.append(f"{result['rows_per_second']:.1f} rows a second")
    return "\n".join(lines) + "\n"


def _format_figures(by_name: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [
        f"  {name:18} {figure['value']:.3f}  ({_format_bounds(figure)})"
        for name, figure in by_name.items()
    ]


def _format_bounds(figure: Mapping[str, float]) -> str:
    if "low" not in figure:
        return f"no interval: fewer than {MIN_GROUPS} groups"
    return f"{figure['low']:.3f} to {figure['high']:.3f}"


def build_result_name(result: Mapping[str, Any]) -> str:
    """Return the file name of a result: set, task and split, and what differs from our defaults."""
    parts = [result["dataset"], result["task"], result["split"]]
    if result["roster"] != "builtin":
        parts.append(result["roster"])
    if result.get("protocol") not in (None, Plan().protocol):
        parts.append(result["protocol"])
    options = result.get("options") or {}
    # The seed is also that of the sample of rows, so it is not part of the name.
    parts += [f"{name}={value}" for name, value in options.items() if name != "seed"]
    if result.get("weights") not in (None, WEIGHT_CHOICES[0]):
        parts.append(result["weights"].split(";")[0])
    return UNSAFE_NAME_CHARS.sub("_", "-".join(str(part) for part in parts if part)) + ".json"


def create_result_folder(folder: Path) -> Path:
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
    path = folder / build_result_name(result)
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
    given: argparse.Namespace,
    home: Path,
    request: CheckRequest,
    keys_of: KeyLoader,
    say: MessageWriter,
    out: OutputWriter,
) -> int:
    """Measure and print the figures; return 0, or 1 if it failed or was stopped."""
    keep = None if given.keep is None else create_result_folder(Path(given.keep))
    try:
        result = _run_measurement(given, home, request, keys_of, say)
    except ModelError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Stopped. What is done is kept; the same command goes on from there.")
        return 1
    if given.protocols is not None:
        out(json.dumps(result, default=asdict) + "\n" if given.json else format_comparison(result))
        return 0
    if keep is not None:
        write_result(keep, result)
    out(json.dumps(result, ensure_ascii=False) + "\n" if given.json else format_result(result))
    return 0


def _run_measurement(
    options: argparse.Namespace,
    home: Path,
    request: CheckRequest,
    keys_of: KeyLoader,
    say: MessageWriter,
) -> dict[str, Any]:
    order = EvaluationRequest(
        options.dataset,
        Path(options.path),
        task=options.task,
        split=options.split,
        limit=options.limit,
        seed=options.seed,
        trivial_limit=options.trivial_limit,
        runner=take_runner_options(options),
    )
    if options.tool is not None or options.system is not None:
        require_used_rates(None)
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
        system = RecordedSystemRequest(options.system, options.detector, options.prompt, fit_folder)
        return evaluate_recorded(order, system, say)
    keys = keys_of(request)
    if options.protocols is not None:
        is_built_in = not request.model and request.roster == BUILT_IN_ROSTER
        names = ",".join(READER_PROTOCOLS if is_built_in else PROTOCOLS)
        ways = parse_ways(names if options.protocols == "all" else options.protocols)
        baseline, *others = parse_ways(options.against)
        if others:
            raise InputError(f"Expected one way in --against, found {1 + len(others)}.")
        return compare_protocols(
            order, ways, request, say, home=home, keys=keys, baseline=baseline,
            is_learned=is_learned,
        )  # fmt: skip
    plan, notices = plan_check(home, request, keys)
    require_used_rates(plan.sheet)
    for notice in notices:
        say(notice)
    require_weighed_protocol(is_learned, [plan])
    return evaluate_engine(order, build_engine(home, plan, keys, is_learned=is_learned), say)
