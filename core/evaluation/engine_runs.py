"""Check rows with an engine: what a worker needs, and what a finished check says of its row."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import logging
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from core.agents.qualification import load_standing
from core.baseline.encoder import load_multilingual_encoder
from core.baseline.entailment import load_assessor, load_reader_choice
from core.baseline.span_reader import fill_gaps, merge_scored_words
from core.baseline.wording import join_names
from core.debate.protocols import list_deciding_agents, uses_learned_weights, weighs_answers
from core.evaluation.dataset_files import GoldRow, GoldSpan
from core.evaluation.outcomes import (
    FAILED_CAUSE,
    REFUSED_CAUSE,
    Prediction,
)
from core.llm.keys import Keys
from core.llm.prompting import PromptBook
from core.pipeline.run_factory import RunAgents, RunPayer, build_run_agents, digest_program
from core.pipeline.span_stage import find_hard_spans
from core.pipeline.temporary_home import (
    TEMPORARY_AUTHOR,
    CheckMaterial,
    TemporaryHome,
    check_case,
    open_temporary_home,
)
from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import InputError, ReviewError
from core.schema.records import CONSENSUS_KIND, Case, Label, Plan, Run, Stance
from core.schema.roles import ConsensusPolicy
from core.schema.run_state import RESUMABLE_CAUSES, RunState, sum_costs
from core.store import Store, open_store
from core.store.versions import LearnedArtefact, parse_body
from core.verdict.consensus_weights import LearnedConsensusPolicy, parse_stored_weights

WEIGHT_CHOICES = ("uniform", "learned")
MAX_NUMBER = 1_000_000_000
MAX_REASON_CHARS = 300
EVALUATE_DESCRIPTION = """\
Measure an engine on a labelled public set, and print figures with their 95 % intervals.

--path is the folder that holds the sets' folders, as they lie; a set's name is its folder's name.
Beside the engine's figures stand those of trivial answers and of the same engine with its evidence
taken away or exchanged. What is done is kept in the home, row by row: an evaluation that was
stopped, or killed, goes on where it was. Progress goes to standard error."""
EVALUATE_EXAMPLES = """\
examples:
  python -m core evaluate --dataset fever_symmetric --path data --json
  python -m core evaluate --dataset halueval --task qa --path data --split dev20 --limit 500
  python -m core evaluate --dataset qags --path data --model openai/gpt-4.1-mini --token-cap 900000
  python -m core evaluate --dataset realmistake --task recorded --system consensus --path data
  python -m core evaluate --dataset haluagent --task ape --tool calculator --path data
  python -m core evaluate --dataset qags --path data --protocols single,ceda --workers 2

exit code: 0 measured; 1 the engine failed or was stopped; 2 bad input or a missing key, with one
line that says so."""
CARD_PACKAGES = ("onnxruntime", "numpy", "litellm", "ray")
INDEPENDENT_MODES = ("answer", "detect")
ProgressWriter = Callable[[str], None]
LOGGER = logging.getLogger(__name__)
# Measuring code and user interface are not part of the engine that is measured, but what shapes
# its predictions is: they are kept as they are shaped here.
UNMEASURED_PATHS = ("evaluation", "__main__.py", "pipeline/doctor.py")
SHAPING_PATHS = ("evaluation/engine_runs.py",)


def require_weighed_protocol(is_learned: bool, plans: Sequence[Plan]) -> None:
    """Raise InputError if learned weights are asked for and no plan can use them."""
    if is_learned and not any(uses_learned_weights(plan) for plan in plans):
        left_out = " without weights" if any(weighs_answers(plan) for plan in plans) else ""
        names = ", ".join(dict.fromkeys(plan.protocol for plan in plans)) + left_out
        raise InputError(
            f"Expected a protocol that weighs answers beside --weights learned, found {names}; "
            "choose sc_maks, or leave --weights out."
        )


def load_weights_in_use(store: Store, home: Path) -> LearnedArtefact:
    """Return the debaters' weights in use in the home's first project.

    Raises InputError if there are none, or they are not for debaters' answers, and ConfigError if
    they were changed after learning.
    """
    project = store.projects.first()
    learned = store.learned.in_use(CONSENSUS_KIND, project.id) if project else None
    if learned is None or parse_body(learned, parse_stored_weights) is None:
        raise InputError(
            f"Expected learned weights of debaters in use in {home}, found none; learn them there "
            "with python -m core.learning.weigh --use REASON, or leave --weights out."
        )
    return learned


def describe_weights(weigher: ConsensusPolicy) -> str:
    """Return the weigher's method, and which debaters it does not know.

    Raises InputError if the weights are learned, but for none of these debaters.
    """
    if not isinstance(weigher, LearnedConsensusPolicy):
        return weigher.method
    unknown = weigher.unknown
    if len(unknown) == len(weigher.seats):
        raise InputError(
            f"Expected weights of {join_names(unknown)}, found none of them in "
            f"{weigher.method}; learn from checks with this roster, or leave --weights out."
        )
    return "; ".join([weigher.method, *(f"no record of {name}" for name in unknown)])


def add_commands(
    commands: Any, add_home: Any, add_who: Any, whole: Callable[[str, int, int], int]
) -> None:
    """Add `evaluate`; `whole(text, least, most)` parses a number, `add_who` adds engine options."""
    parser = commands.add_parser(
        "evaluate",
        help="measure an engine on a labelled public set",
        description=EVALUATE_DESCRIPTION,
        epilog=EVALUATE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(parser, whole)
    add_who(parser)
    add_weights_option(parser)
    add_runner_options(parser, whole)
    parser.add_argument("--keep", metavar="DIR", help="also write the result there, as a file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_home(parser)


def _add_options(parser: argparse.ArgumentParser, whole: Callable[[str, int, int], int]) -> None:
    """Add the options that choose rows, and what to measure instead of an engine."""
    count, seed = (partial(_parse_number, whole, least) for least in (1, 0))
    parser.add_argument("--dataset", required=True, metavar="NAME", help="the set's name")
    parser.add_argument(
        "--path", required=True, metavar="DIR", help="the folder that holds the sets' folders"
    )
    parser.add_argument("--task", help="which task of the set (default: its first)")
    parser.add_argument(
        "--split",
        help="dev20, train80, train70 or calibration10 (by hash of the group), or a split of files "
        "such as train, dev or test (default: whatever files are there)",
    )
    parser.add_argument(
        "--limit", metavar="N", type=count, help="a seeded sample, each label with its share"
    )
    parser.add_argument("--seed", metavar="S", type=seed, default=0, help="of all samples")
    parser.add_argument(
        "--trivial-limit",
        metavar="N",
        type=count,
        default=200,
        help="rows that are checked again without, and with other, evidence (default: 200)",
    )
    parser.add_argument(
        "--system",
        help="where a set records what detectors said (realmistake, task recorded): own_answer, "
        "classifier, majority or consensus instead of an engine",
    )
    parser.add_argument("--detector", metavar="NAME", help="with --system: whose verdicts")
    parser.add_argument("--prompt", metavar="N", help="with --system: under which prompt (1 to 4)")
    parser.add_argument(
        "--fit",
        metavar="DIR",
        help="with --system: the folder that holds the sets' folders to learn from "
        "(default: five folds of --path)",
    )
    parser.add_argument(
        "--protocols",
        metavar="WAYS",
        help="compare ways to argue on the same rows: all, or a list of protocols with options "
        "as in colmad:rounds=1, copmad:swap or sc_maks:without=adversary",
    )
    parser.add_argument(
        "--against", metavar="WAY", default="single", help="with --protocols: the baseline"
    )
    parser.add_argument(
        "--tool",
        metavar="NAME",
        help="one tool of an audit alone instead of an engine, on what it reads by itself",
    )


def add_runner_options(
    parser: argparse.ArgumentParser, whole: Callable[[str, int, int], int]
) -> None:
    """Add the options that say where rows are run, and how fast calls are sent."""
    parser.add_argument(
        "--workers",
        metavar="N",
        type=partial(_parse_number, whole, 1),
        default=1,
        help="rows that are checked side by side (default: 1)",
    )
    parser.add_argument(
        "--executor",
        choices=("threads", "ray"),
        default="threads",
        help="threads of this process, or a Ray cluster (requirements-ray.txt)",
    )
    parser.add_argument("--address", metavar="A", default="", help="of the Ray cluster")
    parser.add_argument(
        "--rate",
        action="append",
        default=[],
        metavar="NAME=N/s",
        help="most requests to a provider or server: openai=50/s, 127.0.0.1:8080=300/min, "
        "openai=200000tokens/min; may be given several times",
    )


def _parse_number(whole: Callable[[str, int, int], int], least: int, text: str) -> int:
    return whole(text, least, MAX_NUMBER)


def add_weights_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the weights of debaters' answers."""
    parser.add_argument(
        "--weights",
        choices=WEIGHT_CHOICES,
        default=WEIGHT_CHOICES[0],
        help="how debaters' answers count where a protocol weighs them (sc_maks): all alike, or "
        "by the weights that are in use in the home's first project (default: uniform)",
    )


def collect_first_answers(progress: RunState) -> tuple[Stance, ...]:
    """Return the stance of each debater's first independent answer, in the debaters' order."""
    stances: dict[str, Stance] = {}
    for turn in sorted(progress.turns, key=lambda turn: turn.number):
        if turn.manner in INDEPENDENT_MODES and turn.assigned is None:
            stances.setdefault(turn.debater, turn.stance)
    return tuple(stances.values())


def get_statement_labels(progress: RunState) -> tuple[Label, ...]:
    """Return the judgement's label of each statement; its own label if it has no statements."""
    judgement = progress.judgement
    return (judgement.statement_labels or (judgement.label,)) if judgement is not None else ()


@dataclass(frozen=True)
class Engine:
    """The engine that checks: a plan and the home whose classifier, ledger and settings it uses.

    What the project learned counts if the plan names it; a lead's waiver of a failed model does.
    """

    home: Path
    plan: Plan
    keys: Keys
    project_id: str = ""

    @property
    def id(self) -> str:
        """An id that changes whenever the same row could get another answer."""
        names = (compute_engine_digest()[:12], load_multilingual_encoder().id, self.plan.classifier)
        return " ".join((*names, load_assessor(self.home, self.plan.reader).id, *self._unfit()))

    def _unfit(self) -> Iterator[str]:
        """Yield the models whose verdicts do not count, as they failed the judge test."""
        agents = list_deciding_agents(self.plan, self.plan.sheet) if self.plan.sheet else ()
        with open_store(self.home) as store:
            for agent in agents:
                if not load_standing(store, self.project_id, agent, PromptBook()).may_decide:
                    yield f"without {agent.model}"


def build_engine(home: Path, plan: Plan, keys: Keys, *, is_learned: bool = False) -> Engine:
    """Return the engine with the home's settings and active classifier.

    All answers count equally, unless it `is_learned` and the plan's protocol weighs answers: then
    the weights in use in the home's first project apply. Raises InputError if none are in use.
    """
    with open_store(home) as store:
        settings, project = store.projects.settings(), store.projects.first()
        active, reader = store.versions.active(), plan.reader or load_reader_choice(store)
        learned = (
            load_weights_in_use(store, home) if is_learned and uses_learned_weights(plan) else None
        )
    passages, turns = settings.passages, settings.max_turns
    plan = replace(plan, classifier=active, reader=reader, passages=passages, max_turns=turns)
    if learned is not None:
        plan = replace(plan, agent_weights=learned.number)
    return Engine(home, plan, keys, project.id if project else "")


@lru_cache(maxsize=1)
def compute_engine_digest() -> str:
    """Return a digest of what makes predictions: `core` in part, and the pinned packages."""
    core = PROJECT_ROOT / "core"
    excluded, shaping = ({core / n for n in names} for names in (UNMEASURED_PATHS, SHAPING_PATHS))
    return digest_program(
        PROJECT_ROOT, lambda path: path in shaping or not excluded & {path, *path.parents}
    )


def describe_machine() -> dict[str, Any]:
    """Return what of this computer and its packages could change predictions or their pace."""
    packages = {}
    for name in CARD_PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            packages[name] = importlib.metadata.version(name)
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": packages,
    }


@dataclass(frozen=True)
class RowTask:
    """A row to check with one of several engines; `digest` identifies what engines see of it."""

    cell: int
    position: int
    digest: str
    row: GoldRow


@dataclass(frozen=True)
class WorkerSetup:
    """What a worker needs to check rows: an engine for each cell, and who pays.

    Calls are booked to runs named `prefix`, cell and position, so that a row that is tried again
    takes the replies that were paid for. Rows are then checked as their engine's project would: by
    its prompts, role and instruction. Without a prefix the digest alone names the run, and prompts
    are the shipped ones.
    """

    engines: tuple[Engine, ...]
    person: str = TEMPORARY_AUTHOR
    prefix: str = ""

    def get_run_id(self, task: RowTask) -> str:
        """Return the id of the run that a row's calls are booked to."""
        return f"{self.prefix}-{task.cell}-{task.position}" if self.prefix else task.digest


@dataclass
class EngineRuns:
    """Checks rows, one after the other, in the thread that opened it.

    Each engine has a temporary home of its own: none finds what another has read.
    """

    setup: WorkerSetup
    store: Store
    stack: contextlib.ExitStack
    homes: dict[int, TemporaryHome] = field(default_factory=dict)
    staff: dict[int, RunAgents] = field(default_factory=dict)

    def predict_row(self, task: RowTask, stop: StopSignal) -> Prediction:
        """Return one row's prediction; one that `is_failure` says why as its cause."""
        started = time.monotonic()
        row, engine = task.row, self.setup.engines[task.cell]
        try:
            stop.check()
            case = self._get_home(task.cell).store_case(self._build_material(task))
            progress = check_case(case, self.get_agents(task, case), engine.plan, stop)
        except InputError as error:
            return Prediction("unclear", cause=f"{REFUSED_CAUSE}: {error}")
        except ReviewError as error:
            return Prediction("unclear", cause=f"{FAILED_CAUSE}: {error}")
        except Exception as error:
            LOGGER.exception("%s: the engine broke off", row.place)
            return Prediction("unclear", cause=f"{FAILED_CAUSE}: an unexpected error: {error!r}")
        seconds = round(time.monotonic() - started, 4)
        if progress.verdict is None or progress.verdict.cause in RESUMABLE_CAUSES:
            cause = f"{FAILED_CAUSE}: {_describe_failure(progress)}"
            said = Prediction("unclear", cause=cause, seconds=seconds)
        else:
            said = build_prediction(progress, seconds)
        calls = [call for call in progress.calls.values() if call.origin != "reused"]
        tokens = sum(call.tokens_in + call.tokens_out for call in calls)
        return replace(said, calls=len(calls), tokens=tokens, cost=sum_costs(calls))

    def _get_home(self, cell: int) -> TemporaryHome:
        if cell not in self.homes:
            settings = self.store.projects.settings()
            self.homes[cell] = self.stack.enter_context(open_temporary_home(settings))
        return self.homes[cell]

    def _build_material(self, task: RowTask) -> CheckMaterial:
        row, project = task.row, None
        if self.setup.prefix:
            project = self.store.projects.get(self.setup.engines[task.cell].project_id)
        material = CheckMaterial(row.response, row.question, row.documents, row.images)
        if project is None:
            return material
        return replace(
            material,
            role=project.role if row.role is None else row.role,
            instruction=project.instruction if row.instruction is None else row.instruction,
        )

    def get_agents(self, task: RowTask, case: Case) -> RunAgents:
        """Return the row's agents, with an account of its own; built-in ones serve all rows."""
        if (staff := self.staff.get(task.cell)) is not None:
            return staff
        setup, engine = self.setup, self.setup.engines[task.cell]
        run_id = setup.get_run_id(task)
        run = Run(run_id, task.digest, engine.project_id, engine.plan, "running", 0.0)
        payer = RunPayer(setup.person, engine.keys)
        staff = build_run_agents(
            self.store, engine.home, run, payer, None, case=case,
            sources=self._get_home(task.cell).home, book=None if setup.prefix else PromptBook(),
        )  # fmt: skip
        if engine.plan.sheet is None:
            self.staff[task.cell] = staff
        return staff


@contextlib.contextmanager
def open_engine_runs(setup: WorkerSetup) -> Iterator[EngineRuns]:
    """Open the store, to be used by this thread alone."""
    with open_store(setup.engines[0].home) as store, contextlib.ExitStack() as stack:
        yield EngineRuns(setup, store, stack)


def describe_engine_weights(engine: Engine) -> str | None:
    """Describe the weights of debaters' answers; None if the protocol does not weigh them.

    Raises InputError if learned weights exist for none of this roster's debaters.
    """
    if not weighs_answers(engine.plan):
        return None
    with open_engine_runs(WorkerSetup((engine,))) as runs:
        task = RowTask(0, 0, "weights", GoldRow("", "", "", None, ""))
        return describe_weights(runs.get_agents(task, Case("", "", "")).roster.weigher)


def build_prediction(progress: RunState, seconds: float = 0.0) -> Prediction:
    """Convert a finished run into a prediction.

    `spans` are the words that the span reader would mark whatever the verdict, because that is what
    sets with marked words ask for; `shown` are those a person sees, which depend on the verdict. If
    a panel voted, `spans` follow its votes. With neither, `spans` are the run's spans, and `soft`
    those that were ruled on, with their probabilities.
    """
    verdict, judgement = progress.verdict, progress.judgement
    if verdict is None:
        raise LookupError("the run has no verdict")
    p = verdict.p_hallucinated
    if p is None and judgement is not None:
        p = judgement.p
    shown = wrong = tuple(GoldSpan(span.start, span.end, span.p) for span in progress.spans)
    soft = tuple(GoldSpan(r.span.start, r.span.end, r.span.p) for r in progress.rulings)
    if progress.soft is not None and progress.case is not None:
        labels, threshold = progress.soft.labels, progress.soft.threshold
        places = find_hard_spans(labels, threshold, progress.case.response)
        wrong = tuple(GoldSpan(start, end) for start, end in places)
        soft = tuple(GoldSpan(label.start, label.end, label.p) for label in labels)
    elif progress.words is not None and progress.case is not None:
        scores, threshold = progress.words.scores, progress.words.threshold
        marked = merge_scored_words(scores, progress.case.response, threshold)
        wrong = tuple(GoldSpan(stretch.start, stretch.end, stretch.p) for stretch in marked)
        soft = tuple(GoldSpan(word.start, word.end, word.p) for word in fill_gaps(scores))
    return Prediction(
        verdict.label,
        p,
        spans=wrong,
        soft=soft,
        cause=verdict.cause or "",
        seconds=seconds,
        shown=shown,
        openings=collect_first_answers(progress),
        statements=get_statement_labels(progress),
        turns=len(progress.turns),
        reason=verdict.rationale[:MAX_REASON_CHARS],
    )


def _describe_failure(progress: RunState) -> str:
    if progress.verdict is not None:
        return f"{progress.verdict.cause}: {progress.verdict.cause_words}"
    ending = progress.ending
    return ending.message if ending is not None and ending.kind == "run_failed" else "it broke off"
