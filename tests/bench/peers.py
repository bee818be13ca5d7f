"""The table of peers: the same labelled rows scored by this app, by UQLM and by SelfCheck-NLI.

`make peers SETS=dir`, or `python -m tests.bench.peers --path DIR --rows N`. Language models of all
methods are one: the small local model (`make local-model`), or the one at `--api-base`. UQLM lives
in an environment of its own (`--peers-python`), for it needs older packages than the app.

Every score becomes a probability that the response is hallucinated, one minus UQLM's confidence.
The natural threshold is one half: above it a row is called hallucinated, below it supported, and
exactly on it (a judge's “I am not sure”) nothing. The app's own methods have their own limits. What
a method could not answer counts as failed and is never a verdict.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

from core.baseline.entailment import load_reader
from core.documents.segmentation import split_sentences
from core.evaluation.dataset_files import GoldRow
from core.evaluation.datasets import get_task_rule
from core.evaluation.engine_runs import build_engine
from core.evaluation.evaluate import (
    EvaluationRequest,
    compute_figures,
    load_labelled_rows,
    remove_evidence,
    sample_rows,
)
from core.evaluation.metrics import Figure
from core.evaluation.outcomes import (
    FAILED_CAUSE,
    PRIOR_P,
    UNREADABLE_CAUSE,
    Outcomes,
    Prediction,
    predict_constant,
)
from core.evaluation.runner import DEFAULT_RUNNER, open_row_runner
from core.llm.export import wheel_folder
from core.llm.keys import Keys
from core.llm.local_server import MODEL, SERVER, WINDOW
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import InputError, ReviewError
from core.schema.records import Label, Plan
from core.schema.rosters import AgentConfig, RosterConfig
from tests.bench.peer_files import SAMPLES_METHOD, PeerRow, PeerScore, read_lines, write_lines

PEERS_PYTHON = PROJECT_ROOT / ".venv" / "peers" / "bin" / "python"
PAGE = PROJECT_ROOT / "docs" / "researchers.md"
BEGIN_MARKER, END_MARKER = "<!-- peers: begin -->", "<!-- peers: end -->"
NO_QUESTION = "Say in one sentence what this is about."
PROMPT = "{question}\nGo by this text: {text}"
SECONDS = 300  # the longest silence: a slow machine is no failure here
TOKEN_CAP = 10_000_000
NLI_NEED, BERT_NEED = "--nli-model NAME", "--bert-score, which fetches roberta-large"
UQLM_NEEDS = {
    "exact_match": "",
    "cosine_sim": "",
    "noncontradiction": NLI_NEED,
    "entailment": NLI_NEED,
    "semantic_negentropy": NLI_NEED,
    "semantic_sets_confidence": NLI_NEED,
    "bert_score": BERT_NEED,
}
JUDGES = ("judge true_false_uncertain", "judge true_false", "judge continuous", "judge likert")
TITLES = (
    "method", "AUROC", "balanced accuracy", "without abstaining", "answered", "failed",
    "seconds a row", "calls", "tokens",
)  # fmt: skip
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """A method's predictions on the rows and what each cost on average, or why there are none."""

    name: str
    said: Sequence[Prediction] = ()
    seconds: float = 0.0
    calls: float = 0.0
    tokens: float = 0.0
    missing: str = ""


@dataclass(frozen=True)
class Served:
    """The language model that all methods ask."""

    model: str
    api_base: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of each set; return 2 where something is missing, with one line."""
    given = _parse(arguments)
    try:
        version = find_uqlm(given.peers_python)
        with ExitStack() as stack:
            stack.callback(SERVER.close)
            made = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folder: Path = given.keep or made
            model = Served(given.model, given.api_base or SERVER.address())
            tables = [
                _measure_set(name, given, model, version, folder / name.replace(":", "-"))
                for name in given.dataset or ["halueval:qa"]
            ]
    except ReviewError as error:
        _tell(str(error))
        return 2
    text = "\n".join(tables)
    sys.stdout.write(text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(insert_table(page, text), encoding="utf-8")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.add_argument("--path", type=Path, required=True, help="the folder of the sets' folders")
    parser.add_argument(
        "--dataset", action="append", metavar="SET[:TASK]", help="default: halueval:qa"
    )
    parser.add_argument("--rows", type=int, default=100, help="a seeded sample of each set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=5, help="answers drawn for each row")
    parser.add_argument("--model", default=MODEL, help="its name, where --api-base is given")
    parser.add_argument("--api-base", default="", help="default: the small local model")
    parser.add_argument("--peers-python", type=Path, default=PEERS_PYTHON, metavar="PATH")
    parser.add_argument("--nli-model", default="", help="of UQLM: a folder, or a name of the Hub")
    parser.add_argument("--bert-score", action="store_true", help="fetches roberta-large")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep homes, rows and scores")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/")
    return parser.parse_args(arguments)


def find_uqlm(python: Path) -> str:
    """Return the version of UQLM in that environment. Raises InputError if there is none."""
    ask = "import importlib.metadata as m; print(m.version('uqlm'))"
    try:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(
            f"Expected an environment with UQLM behind {python}, found none; make it with "
            "`make peers SETS=dir`, or name another with --peers-python."
        ) from error
    return done.stdout.strip()


def _measure_set(
    name: str, given: argparse.Namespace, model: Served, version: str, folder: Path
) -> str:
    dataset, _, task = name.partition(":")
    order = EvaluationRequest(dataset, given.path, task or None)
    get_task_rule(dataset, order.task)
    rows = sample_rows(
        [row for row in load_labelled_rows(order) if row.documents], given.rows, given.seed
    )
    if not rows:
        raise InputError(f"Expected rows with evidence in {name}, found none; choose another set.")
    folder.mkdir(parents=True, exist_ok=True)
    scores = _ask_uqlm(rows, given, model, folder)
    samples = [one for one in scores if one.method == SAMPLES_METHOD]
    measured = [
        Measured("always hallucinated", predict_constant("hallucinated", rows).said),
        *_measure_engine(rows, name, model, folder),
        _measure_reader(rows),
        _measure_selfcheck(rows, samples, f"SelfCheck-NLI, {given.samples} samples, our reader"),
        *measure_uqlm(rows, scores),
    ]
    groups = int(Outcomes(rows, measured[0].said).groups.max()) + 1
    heading = (
        f"{name}: {len(rows)} rows in {groups} groups, "
        f"{sum(row.label == 'hallucinated' for row in rows)} of them hallucinated, seed "
        f"{given.seed}; {model.model}, UQLM {version}; {os.cpu_count()} cores of "
        f"{platform.machine()}, load {os.getloadavg()[0]:.1f}, {time.strftime('%d %B %Y')}"
    )
    return f"{heading}\n\n{format_table(rows, measured, given.seed)}"


def build_prompt(row: GoldRow) -> str:
    """Return what a model is asked where the row's response is one possible answer."""
    return PROMPT.format(question=row.question or NO_QUESTION, text="\n".join(row.documents))


def _ask_uqlm(
    rows: Sequence[GoldRow], given: argparse.Namespace, model: Served, folder: Path
) -> list[PeerScore]:
    """Let UQLM score the rows in its own environment."""
    asked, scores = folder / "rows.jsonl", folder / "scores.jsonl"
    for path in (asked, scores):
        path.unlink(missing_ok=True)
    write_lines(asked, [PeerRow(row.id, build_prompt(row), row.response) for row in rows])
    command = [
        *(str(given.peers_python), "-m", "tests.bench.uqlm_scores", str(asked), str(scores)),
        *("--api-base", model.api_base, "--model", model.model, "--seed", str(given.seed)),
        *("--samples", str(given.samples), "--encoder", str(wheel_folder())),
        *(("--nli-model", given.nli_model) if given.nli_model else ()),
        *(("--bert-score",) if given.bert_score else ()),
    ]
    done = subprocess.run(command, cwd=PROJECT_ROOT, check=False, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise InputError(
            f"Expected UQLM's scores, found that {given.peers_python} ended with "
            f"{done.returncode}; what it wrote stands above."
        )
    return read_lines(scores, PeerScore)


@dataclass(frozen=True)
class EngineWay:
    """A plan that is measured on the set of that name, in a home of its own."""

    name: str
    plan: Plan
    set_name: str
    home: Path
    rows: Sequence[GoldRow]


def _measure_engine(
    rows: Sequence[GoldRow], name: str, model: Served, folder: Path
) -> list[Measured]:
    """The app's engine: without evidence, one judge, the default protocol, one small judge.

    Each way has a process of its own, for what one has read would be read faster by the next.
    """
    seat = AgentConfig(f"openai/{model.model}", model.api_base, window=WINDOW, seconds=SECONDS)
    small = RosterConfig(f"judge {model.model}", judge=seat)
    ways = {
        "claim alone: single judge, built in": (Plan("single"), remove_evidence(rows)),
        "single judge, built in": (Plan("single"), rows),
        f"{Plan().protocol} (default), built in": (Plan(), rows),
        f"single judge on {model.model}": (
            Plan("single", small.name, sheet=small, token_cap=TOKEN_CAP),
            rows,
        ),
    }
    wanted = [
        EngineWay(title, plan, name.replace(":", "-"), folder / f"home{number}", shown)
        for number, (title, (plan, shown)) in enumerate(ways.items())
    ]
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        return list(pool.map(_measure_way, wanted))


def _measure_way(way: EngineWay) -> Measured:
    engine = build_engine(way.home, way.plan, Keys({}))
    with open_row_runner(engine, way.set_name, _tell, DEFAULT_RUNNER) as runner:
        said = runner.predictions(way.rows, way.name)
    return Measured(
        way.name,
        said,
        mean(one.seconds for one in said),
        mean(one.calls for one in said),
        mean(one.tokens for one in said),
    )


def _split_claims(row: GoldRow) -> list[str]:
    places = split_sentences(row.response, row.language)
    return [row.response[start:end] for start, end in places] or [row.response]


def _measure_reader(rows: Sequence[GoldRow]) -> Measured:
    """The entailment reader over whole documents, the least supported sentence deciding."""
    reader = load_reader()

    def doubt(row: GoldRow) -> float:
        claims = _split_claims(row)
        if len(claims) == 1:
            claims = [f"{row.question} {claims[0]}".strip()]
        readings = (reader.read([(text, claim) for text in row.documents]) for claim in claims)
        return max(1 - max(one.supported for one in found) for found in readings)

    return _measure_each(rows, "entailment reader alone", doubt)


def _measure_selfcheck(
    rows: Sequence[GoldRow], samples: Sequence[PeerScore], title: str
) -> Measured:
    """SelfCheckGPT's NLI variant: contradiction against support, by each sample, as a mean."""
    reader, drawn = load_reader(), {one.row: one for one in samples}

    def doubt(row: GoldRow) -> float | None:
        claims, texts = _split_claims(row), drawn[row.id].samples
        readings = reader.read([(text, claim) for claim in claims for text in texts])
        sides = [(one.contradicted, one.contradicted + one.supported) for one in readings]
        return mean(part / whole for part, whole in sides) if sides else None

    own = _measure_each(rows, title, doubt)
    costs = [drawn[row.id] for row in rows]
    return replace(
        own,
        seconds=own.seconds + mean(cost.seconds for cost in costs),
        calls=mean(cost.calls for cost in costs),
        tokens=mean(cost.tokens for cost in costs),
    )


def _measure_each(
    rows: Sequence[GoldRow], title: str, doubt: Callable[[GoldRow], float | None]
) -> Measured:
    began = time.perf_counter()
    said = [predict(doubt(row)) for row in rows]
    return Measured(title, said, (time.perf_counter() - began) / len(rows))


def predict(p: float | None) -> Prediction:
    """Return the prediction at the natural threshold; without a probability, a failure."""
    if p is None:
        return Prediction("unclear", cause=FAILED_CAUSE)
    label: Label = "unclear" if p == PRIOR_P else "hallucinated" if p > PRIOR_P else "supported"
    return Prediction(label, p)


def measure_uqlm(rows: Sequence[GoldRow], scores: Sequence[PeerScore]) -> list[Measured]:
    """Return UQLM's methods, its panel (the mean of the judges that could be read) among them."""
    found: dict[str, dict[str, PeerScore]] = {}
    for score in scores:
        found.setdefault(score.method, {})[score.row] = score
    judges = [found[name] for name in JUDGES if name in found]
    if judges:
        found["panel of the four judges, mean"] = {
            row.id: _average([judge[row.id] for judge in judges]) for row in rows
        }
    measured = []
    for method in dict.fromkeys((*UQLM_NEEDS, *found)):
        need = UQLM_NEEDS.get(method, "")
        if method not in found:
            measured.append(Measured(f"UQLM {method}", missing=f"not measured (needs {need})"))
        elif method != SAMPLES_METHOD:
            measured.append(_summarize(f"UQLM {method}", [found[method][row.id] for row in rows]))
    return measured


def _average(scores: Sequence[PeerScore]) -> PeerScore:
    known = [one.confidence for one in scores if one.confidence is not None]
    seconds, calls, tokens = (
        sum(getattr(one, name) for one in scores) for name in ("seconds", "calls", "tokens")
    )
    return PeerScore(scores[0].row, "", mean(known) if known else None, seconds, calls, tokens)


def _summarize(title: str, scores: Sequence[PeerScore]) -> Measured:
    return Measured(
        title,
        [predict(None if one.confidence is None else 1 - one.confidence) for one in scores],
        mean(one.seconds for one in scores),
        mean(one.calls for one in scores),
        mean(one.tokens for one in scores),
    )


def format_table(rows: Sequence[GoldRow], measured: Sequence[Measured], seed: int) -> str:
    """Return the methods as a Markdown table, with 95 % intervals over groups of rows."""
    lines = [TITLES, ("---",) * len(TITLES)]
    lines += [_build_cells(rows, one, seed) for one in measured]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def _build_cells(rows: Sequence[GoldRow], one: Measured, seed: int) -> tuple[str, ...]:
    if one.missing:
        return (one.name, one.missing, *[""] * (len(TITLES) - 2))
    figures = compute_figures(Outcomes(rows, one.said), seed)
    failed = sum(said.is_failure or said.cause == UNREADABLE_CAUSE for said in one.said)
    return (
        one.name,
        *(
            _format_figure(figures, name)
            for name in ("auroc", "balanced_accuracy", "forced_balanced_accuracy")
        ),
        f"{figures['coverage']['value']:.0%}",
        str(failed),
        f"{one.seconds:.2f}",
        f"{one.calls:.1f}",
        f"{one.tokens:.0f}",
    )


def _format_figure(figures: Mapping[str, Figure], name: str) -> str:
    figure = figures.get(name)
    if figure is None:
        return "–"
    if "low" not in figure:  # too few rows to tell
        return f"{figure['value']:.3f}"
    return f"{figure['value']:.3f} ({figure['low']:.2f}–{figure['high']:.2f})"


def insert_table(page: str, table: str) -> str:
    """Return the page with the table between its markers. Raises InputError without them."""
    between = re.compile(f"{re.escape(BEGIN_MARKER)}.*{re.escape(END_MARKER)}", re.DOTALL)
    if not between.search(page):
        raise InputError(f"Expected {BEGIN_MARKER} and {END_MARKER} in {PAGE.name}, found none.")
    return between.sub(lambda _: f"{BEGIN_MARKER}\n{table}{END_MARKER}", page)


def _tell(words: str) -> None:
    sys.stderr.write(words + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
