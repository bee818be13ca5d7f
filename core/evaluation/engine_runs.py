"""Have an engine check rows, keep what it said of each, and count what agents said on the way.

Figures of SC-MAKS 4.7:

- CAAR, the cross-agent agreement rate: how often agents come to one stance independently. An answer
  is independent where its debater heard nobody (manners `answer` and `detect`). `caar` is the share
  of pairs of such answers of a row that take the same stance, its mean over rows with two or more;
  `caar_all` the share of rows in which all take one; `caar_chance` what `caar` would be had the
  same answers fallen on debaters and rows by lot.
- FCR, the factual consistency ratio (`fcr`): the share of rows whose statements the judgement all
  found supported. HR, the hallucination rate (`hr`): the share with a hallucinated statement. Where
  a judgement labels no statements its label stands for them; what stays open counts in neither.

They say how the engine reads a set; what people hold of it stands in `golds`. Rows that broke off
or were refused have no figure.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from core.baseline.entailment import assessor_of, reader_in_use
from core.baseline.export import load_multilingual_encoder
from core.baseline.span_reader import between, stretches
from core.baseline.wording import listed_plainly
from core.debate.protocols import is_weighed, may_be_learned
from core.evaluation.files import GoldRow, GoldSpan
from core.evaluation.outcomes import FAILED, REFUSED, KeptOutcomes, Outcomes, Prediction, digest_of
from core.learning.bench import BY, BenchHome, BenchMaterial, opened_bench
from core.learning.metrics import Numbers
from core.llm.keys import Keys
from core.pipeline.jobs import warm_up
from core.pipeline.run_factory import Payer, Staff, staffed
from core.pipeline.span_stage import hard_places
from core.runtime.concurrency import Stop
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import InputError, ModelError
from core.schema.progress import RESUMABLE, Progress
from core.schema.records import CONSENSUS, Label, Plan, Run, Stance
from core.schema.roles import Weigher
from core.store import Store, open_store
from core.store.sqlite import to_json
from core.store.versions import NONE, Learned, read_body
from core.verdict.consensus_weights import LearnedWeigher, learned_in, with_weigher


def require_weighed(is_learned: bool, plans: Sequence[Plan]) -> None:
    """Raise InputError for learned weights where none of the plans weighs answers by them."""
    if is_learned and not any(may_be_learned(plan) for plan in plans):
        left_out = " without weights" if any(is_weighed(plan) for plan in plans) else ""
        names = ", ".join(dict.fromkeys(plan.protocol for plan in plans)) + left_out
        raise InputError(
            f"Expected a protocol that weighs answers beside --weights learned, found {names}; "
            "choose sc_maks, or leave --weights out."
        )


def weights_in_use(store: Store, home: Path) -> Learned:
    """The weights of debaters that the home's first project goes by.

    Raises InputError: there are none, or they are of no debater's answers. Raises ConfigError: they
    are not as they were learned.
    """
    project = store.projects.first()
    found = store.learned.in_use(CONSENSUS, project.id) if project else None
    if found is None or read_body(found, learned_in) is None:
        raise InputError(
            f"Expected learned weights of debaters in use in {home}, found none; learn them there "
            "with python -m core.learning.weigh --use REASON, or leave --weights out."
        )
    return found


def weights_said(weigher: Weigher) -> str:
    """The weigher's method, and which debaters it does not know.

    Raises InputError: the weights are learned, but of none of these debaters.
    """
    if not isinstance(weigher, LearnedWeigher):
        return weigher.method
    unknown = weigher.unknown
    if len(unknown) == len(weigher.seats):
        raise InputError(
            f"Expected weights of {listed_plainly(unknown)}, found none of them in "
            f"{weigher.method}; learn from checks with this roster, or leave --weights out."
        )
    return "; ".join([weigher.method, *(f"no record of {name}" for name in unknown)])


WEIGHTS = ("uniform", "learned")
MOST_ROWS = 1_000_000_000
EVALUATE_WORDS = """\
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

exit code: 0 measured; 1 the engine failed or was stopped; 2 bad input or a missing key, with one
line that says so."""


def add_commands(
    commands: Any, add_home: Any, add_who: Any, whole: Callable[[str, int, int], int]
) -> None:
    """Add it; `whole(text, least, most)` reads a number, `add_who` adds who checks."""
    parser = commands.add_parser(
        "evaluate",
        help="measure an engine on a labelled public set",
        description=EVALUATE_WORDS,
        epilog=EVALUATE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_which(parser, whole)
    add_who(parser)
    add_weights(parser)
    parser.add_argument("--keep", metavar="DIR", help="also write the result there, as a file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_home(parser)


def _add_which(parser: argparse.ArgumentParser, whole: Callable[[str, int, int], int]) -> None:
    """Which rows, and what else than an engine may be measured."""
    count, seed = (partial(_whole, whole, least) for least in (1, 0))
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
        "--tool",
        metavar="NAME",
        help="one tool of an audit alone instead of an engine, on what it reads by itself",
    )


def _whole(whole: Callable[[str, int, int], int], least: int, text: str) -> int:
    return whole(text, least, MOST_ROWS)


def add_weights(parser: argparse.ArgumentParser) -> None:
    """By which weights debaters' answers count, where a protocol weighs them."""
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default=WEIGHTS[0],
        help="how debaters' answers count where a protocol weighs them (sc_maks): all alike, or "
        "by the weights that are in use in the home's first project (default: uniform)",
    )


STANCES: tuple[Stance, ...] = ("supported", "hallucinated", "unclear")
INDEPENDENT = ("answer", "detect")


def first_answers(progress: Progress) -> tuple[Stance, ...]:
    """The stance of each debater's first answer that was given alone, in the debaters' order."""
    found: dict[str, Stance] = {}
    for turn in sorted(progress.turns, key=lambda turn: turn.number):
        if turn.manner in INDEPENDENT and turn.assigned is None:
            found.setdefault(turn.debater, turn.stance)
    return tuple(found.values())


def statement_labels(progress: Progress) -> tuple[Label, ...]:
    """What the judgement found of each statement; of the whole where it tells none apart."""
    judgement = progress.judgement
    return (judgement.statement_labels or (judgement.label,)) if judgement is not None else ()


def agent_rows(found: Outcomes) -> dict[str, Numbers]:
    """(n,) each figure of each row, NaN where the row has none; a figure of no row is left out."""
    rows = np.array([_row(one) for one in found.said], dtype=np.float64).reshape(-1, 4)
    named = zip(("caar", "caar_all", "fcr", "hr"), rows.T, strict=True)
    return {name: values for name, values in named if not np.isnan(values).all()}


def openings(found: Outcomes) -> Numbers:
    """(n, 3) how many first answers took each stance, of rows that have an agreement."""
    rows = [one.openings if len(one.openings) > 1 else () for one in found.said]
    counts = [[row.count(stance) for stance in STANCES] for row in rows]
    return np.array(counts, dtype=np.float64).reshape(-1, len(STANCES))


def _row(said: Prediction) -> tuple[float, float, float, float]:
    pair = whole = carried = wrong = np.nan
    if len(said.openings) > 1:
        pairs = [a == b for a, b in itertools.combinations(said.openings, 2)]
        pair, whole = sum(pairs) / len(pairs), float(all(pairs))
    if said.statements and not said.is_failure:
        carried = float(all(label == "supported" for label in said.statements))
        wrong = float("hallucinated" in said.statements)
    return pair, whole, carried, wrong


Tell = Callable[[str], None]
TELL_SECONDS = 5.0
FAILURES_IN_A_ROW = 3
LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Engine:
    """Who checks: a plan over a home, whose classifier, ledger and settings are used.

    `project_id` is the project whose learned weights the plan names, where it names any.
    """

    home: Path
    plan: Plan
    keys: Keys
    project_id: str = ""

    @property
    def id(self) -> str:
        """Changes whenever the same row could get another answer."""
        names = (engine_digest()[:12], load_multilingual_encoder().id, self.plan.classifier)
        return " ".join((*names, assessor_of(self.home, self.plan.reader).id))


def engine_of(home: Path, plan: Plan, keys: Keys, *, is_learned: bool = False) -> Engine:
    """The engine as the home's settings and active classifier have it.

    All answers count alike, unless it `is_learned`: then they count by the weights that are in use
    in the home's first project, where the plan's protocol weighs answers. Raises InputError: there
    are none in use.
    """
    with open_store(home) as store:
        settings = store.projects.settings()
        active, reader = store.versions.active(), plan.reader or reader_in_use(store)
        found = weights_in_use(store, home) if is_learned and may_be_learned(plan) else None
    passages, turns = settings.passages, settings.max_turns
    plan = replace(plan, classifier=active, reader=reader, passages=passages, max_turns=turns)
    if found is None:
        return Engine(home, plan, keys)
    return Engine(home, replace(plan, agent_weights=found.number), keys, found.project_id)


# What measures, and what only talks to people, is no part of the engine that is measured.
NOT_MEASURED = ("evaluation", "__main__.py", "pipeline/doctor.py")


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """Names all that is in `core` but `NOT_MEASURED`, and the pinned packages."""
    core = PROJECT_ROOT / "core"
    aside = {core / name for name in NOT_MEASURED}
    whole = hashlib.sha256()
    for path in sorted([*core.rglob("*"), PROJECT_ROOT / "requirements.txt"]):
        if path.is_file() and path.suffix != ".pyc" and not aside & {path, *path.parents}:
            whole.update(str(path.relative_to(PROJECT_ROOT)).encode())
            whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


@dataclass
class EngineRuns:
    """An engine at work; `failed` counts rows that it could not finish and that are tried again."""

    engine: Engine
    bench: BenchHome
    store: Store
    kept: KeptOutcomes
    tell: Tell
    failed: int = 0
    in_a_row: int = 0
    staff: Staff | None = field(default=None)

    def predictions(self, rows: Sequence[GoldRow], what: str) -> list[Prediction]:
        """What the engine says of each row, in order; `what` names the rows on screen.

        Raises ModelError: a budget is spent, or several rows in a row failed; the rest is kept.
        """
        digests = [digest_of(row) for row in rows]
        said = {d: found for d in digests if (found := self.kept.get(d)) is not None}
        unknown = [(d, r) for d, r in zip(digests, rows, strict=True) if d not in said]
        waiting = _by_documents(unknown)
        if said:
            self.tell(f"{what}: {len(rows) - len(waiting)} of {len(rows)} rows are known already")
        began = told = time.monotonic()
        for done, (digest, row) in enumerate(waiting, start=1):
            said[digest] = self._said(digest, row)
            now = time.monotonic()
            if now - told >= TELL_SECONDS or done == len(waiting):
                told = now
                rate = done / max(now - began, 1e-9)
                self.tell(f"{what}: {done} of {len(waiting)} rows, {rate:.1f} a second")
        return [said[digest] for digest in digests]

    def weights(self) -> str | None:
        """By which weights debaters' answers count, in words; None where nobody weighs them.

        Raises InputError: the learned ones are of none of this roster's debaters.
        """
        if not is_weighed(self.engine.plan):
            return None
        return weights_said(self.seated("weights").roster.weigher)

    def checked(self, digest: str, row: GoldRow) -> Progress:
        """The whole run over a row, which is not kept.

        Raises InputError: the row cannot be stored as a case.
        """
        material = BenchMaterial(row.response, row.question, row.documents, row.images)
        return self.bench.check(material, self.seated(digest), self.engine.plan, Stop())

    def _said(self, digest: str, row: GoldRow) -> Prediction:
        """One row's prediction; what is no answer of the engine's is not kept."""
        began = time.monotonic()
        try:
            progress = self.checked(digest, row)
        except InputError as error:
            said = Prediction("unclear", cause=f"{REFUSED}: {error}")
        except ModelError:
            raise
        except Exception as error:
            LOGGER.exception("%s: the engine broke off", row.place)
            return self._failure(f"an unexpected error: {error!r}", row)
        else:
            if progress.verdict is None or progress.verdict.cause in RESUMABLE:
                return self._failure(_why(progress), row)
            said = predicted(progress, round(time.monotonic() - began, 4))
        self.in_a_row = 0
        self.kept.add(digest, said)
        return said

    def _failure(self, why: str, row: GoldRow) -> Prediction:
        self.failed += 1
        self.in_a_row += 1
        if why.startswith("budget_reached") or self.in_a_row >= FAILURES_IN_A_ROW:
            raise ModelError(
                f"The evaluation stopped at {row.place}: {why} What is done is kept; the same "
                "command goes on from there."
            )
        self.tell(f"{row.place}: {why}")
        return Prediction("unclear", cause=FAILED)

    def seated(self, digest: str) -> Staff:
        """Built-in agents serve all rows; models get an account for each, the same every time."""
        if self.staff is not None:
            return self.staff
        plan = self.engine.plan
        alike = replace(plan, agent_weights=NONE)  # the bench's own project has learned nothing
        run = Run(digest, digest, self.bench.project.id, alike, "running", 0.0)
        payer = Payer(BY, self.engine.keys)
        staff = staffed(self.store, self.engine.home, run, payer, None, sources=self.bench.home)
        run = replace(run, plan=plan, project_id=self.engine.project_id)
        staff = replace(staff, roster=with_weigher(staff.roster, self.store, run))
        if plan.sheet is None:
            self.staff = staff
        return staff


@contextlib.contextmanager
def opened_runs(engine: Engine, name: str, tell: Tell) -> Iterator[EngineRuns]:
    """The engine at work on the set of that name."""
    identity = (name, engine.id, to_json(engine.plan))
    warm_up(engine.home)  # loading is no part of a row's time
    with open_store(engine.home) as store, opened_bench(store.projects.settings()) as bench:
        kept = KeptOutcomes(engine.home, name, identity)
        try:
            yield EngineRuns(engine, bench, store, kept, tell)
        finally:
            kept.close()


def predicted(progress: Progress, seconds: float = 0.0) -> Prediction:
    """What a finished run says, in the terms of labelled rows.

    Words found wrong are those that the span reader would mark whatever the verdict, for that is
    what sets with marked words ask; what a person is shown follows the verdict and stands beside.
    Where a panel voted they are what its votes come to. With neither they are the spans that were
    kept, and as likely as those ruled upon are.
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
        places = hard_places(labels, threshold, progress.case.response)
        wrong = tuple(GoldSpan(start, end) for start, end in places)
        soft = tuple(GoldSpan(label.start, label.end, label.p) for label in labels)
    elif progress.words is not None and progress.case is not None:
        scores, threshold = progress.words.scores, progress.words.threshold
        found = stretches(scores, progress.case.response, threshold)
        wrong = tuple(GoldSpan(one.start, one.end, one.p) for one in found)
        soft = tuple(GoldSpan(word.start, word.end, word.p) for word in between(scores))
    told = (wrong, soft, verdict.cause or "", seconds, shown)
    heard = (first_answers(progress), statement_labels(progress), len(progress.turns))
    return Prediction(verdict.label, p, *told, *heard)


def _why(progress: Progress) -> str:
    if progress.verdict is not None:
        return f"{progress.verdict.cause}: {progress.verdict.cause_words}"
    ending = progress.ending
    return ending.message if ending is not None and ending.kind == "run_failed" else "it broke off"


def _by_documents(rows: Sequence[tuple[str, GoldRow]]) -> list[tuple[str, GoldRow]]:
    first: dict[tuple[object, ...], int] = {}
    for place, (_, row) in enumerate(rows):
        first.setdefault((row.documents, row.images), place)
    return sorted(rows, key=lambda item: first[item[1].documents, item[1].images])
