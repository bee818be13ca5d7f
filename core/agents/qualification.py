"""Tests whether a language model can judge at all: twelve fixed claims, each with its evidence.

A reply that is held to a schema always parses, so a model that only guesses would give confident
verdicts. One that fails still speaks, but its verdict is `unclear` until a lead trusts it for the
project. A result belongs to a model, an address and the text of the prompt that asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import msgspec

from core.agents.agent_runner import AgentContext
from core.llm.client import ModelClient
from core.llm.keys import Keys
from core.llm.limits import SpendingCaps
from core.llm.metering import CallAccount, MeteredClient
from core.llm.prompting import Fence, PromptBook
from core.runtime.concurrency import StopSignal, merge_streams
from core.runtime.errors import ReplyError
from core.schema.records import Case, EvidenceContext, Label, Passage
from core.schema.roles import CaseView, Evidence, JudgeView
from core.schema.rosters import AgentConfig, RosterConfig
from core.store import Store, open_store

# (evidence, claim, label). True claims share few words with their evidence, false ones many.
CASES: tuple[tuple[str, str, Label], ...] = (
    ("The bridge was opened to traffic in May 1932, after eight years of work.",
     "Building the bridge took eight years.", "supported"),
    ("The bridge was opened to traffic in May 1932, after eight years of work.",
     "The bridge was opened to traffic in May 1952.", "hallucinated"),
    ("Only two of the nine committee members voted for the proposal.",
     "Most of the committee did not back the proposal.", "supported"),
    ("Only two of the nine committee members voted for the proposal.",
     "Seven of the nine committee members voted for the proposal.", "hallucinated"),
    ("Marie Keller sold the bakery to her brother Paul in 2011.",
     "Paul Keller bought the bakery from his sister.", "supported"),
    ("Marie Keller sold the bakery to her brother Paul in 2011.",
     "Paul Keller sold the bakery to his sister Marie in 2011.", "hallucinated"),
    ("The new pump uses 40 watts, half of what the old model needed.",
     "The old pump drew 80 watts.", "supported"),
    ("The new pump uses 40 watts, half of what the old model needed.",
     "The new pump uses twice as much power as the old model.", "hallucinated"),
    ("Lake Orrin lies at 1,200 metres, and it freezes over every winter.",
     "There is ice on Lake Orrin in the cold season.", "supported"),
    ("Lake Orrin lies at 1,200 metres, and it freezes over every winter.",
     "Lake Orrin lies at 1,200 metres, and it never freezes over.", "hallucinated"),
    ("The museum is closed on Mondays and open until 18:00 on all other days.",
     "Visitors can enter the museum on a Tuesday afternoon.", "supported"),
    ("The museum is closed on Mondays and open until 18:00 on all other days.",
     "The museum is open until 18:00 on Mondays.", "hallucinated"),
)  # fmt: skip
MIN_RIGHT_ANSWERS = 10  # right of the twelve; a coin comes to so many in 2 % of all tests
PROMPT = "judge_plain"
AT_ONCE = 4


@dataclass(frozen=True)
class Qualification:
    """How a model did; `unreadable` replies count as wrong. `at` is in seconds since 1970."""

    model: str
    right: int
    unreadable: int
    of: int
    at: float

    @property
    def has_passed(self) -> bool:
        """True where it judged more cases rightly than a guess would."""
        return self.right >= MIN_RIGHT_ANSWERS

    @property
    def words(self) -> str:
        """The result in a few words: “5 of 12 right, 2 unreadable”."""
        lost = f", {self.unreadable} unreadable" if self.unreadable else ""
        return f"{self.right} of {self.of} right{lost}"


def qualify_model(
    agent: AgentConfig, context: AgentContext, stop: StopSignal, now: float
) -> Qualification:
    """Ask the model about all cases as a single judge, several at once.

    Raises:
        ModelError: the service failed; there is no result.
        Stopped: `stop` was set.
    """
    from core.agents.llm_judge import LlmJudge

    judge = LlmJudge(agent, replace(context, judging=(PROMPT,)))

    def judge_case(number: int) -> Iterator[tuple[int, Label | None]]:
        evidence, claim, _ = CASES[number]
        passage = Passage("P1", "test", "Evidence", False, None, 0, len(evidence), evidence, 1.0)
        case = Case(f"test {number}", "", claim, language="en")
        view = CaseView(case, (), Evidence({passage.id: passage}, {}), {})
        seen = JudgeView(
            view, EvidenceContext((), (passage.id,), ""), (), False, "plain", number + 1001
        )
        try:
            yield number, judge.decide(seen, stop).label
        except ReplyError:
            yield number, None

    streams = [partial(judge_case, number) for number in range(len(CASES))]
    labels = dict(merge_streams(streams, workers=AT_ONCE))
    right = sum(labels[number] == label for number, (_, _, label) in enumerate(CASES))
    unreadable = sum(label is None for label in labels.values())
    return Qualification(agent.model, right, unreadable, len(CASES), now)


def qualify_deciding_models(
    roster: RosterConfig,
    keys: Keys,
    stop: StopSignal,
    *,
    home: Path,
    account: CallAccount,
    clock: Callable[[], float],
) -> Iterator[Qualification]:
    """Test and keep each language model of the roster that may decide in some protocol, one by one.

    `account.run_id` is new for each test, so that no earlier reply is taken for an answer.

    Raises:
        ReviewError: a service failed, or a cap leaves no room; what was tested before is kept.
        Stopped: `stop` was set.
    """
    with open_store(home) as store:
        caps = SpendingCaps.of(store.projects.settings())
        book = PromptBook(store.prompt_edits.of_project(account.project_id))
    client = MeteredClient(ModelClient(keys), home, account, caps, clock)
    context = AgentContext(client, book, Fence.of_run(account.run_id), home)
    for key, agent in list_deciding_models(roster, book).items():
        result = qualify_model(agent, context, stop, clock())
        with open_store(home) as store, store.writing():
            save_qualification(store, key, result)
        yield result


def list_deciding_models(roster: RosterConfig, book: PromptBook) -> dict[str, AgentConfig]:
    """Return the roster's models that decide in some protocol, each once, by their test's key."""
    seats = (roster.judge, roster.tool_picker, *(debater.seat for debater in roster.debaters))
    models = (
        agent for agent in reversed(seats) if not agent.is_built_in
    )  # the judge's settings win
    return {qualification_key(agent, book): agent for agent in models}


def qualification_key(agent: AgentConfig, book: PromptBook) -> str:
    """Return what a result belongs to: a digest of model, address, prompt and cases."""
    prompt = book.prompt(PROMPT, "en")
    whole = json.dumps([agent.model, agent.api_base.rstrip("/"), prompt.hash, CASES])
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def load_qualification(store: Store, key: str) -> Qualification | None:
    """Return the newest result of that key, or None where the model was not tested."""
    kept = store.projects.note(f"qualification.{key}")
    try:
        return msgspec.json.decode(kept, type=Qualification) if kept else None
    except msgspec.MsgspecError:  # written by hand, or by another version: not tested
        return None


def save_qualification(store: Store, key: str, result: Qualification) -> None:
    """Keep the result for the whole home, within `Store.writing()`."""
    store.projects.save_note(f"qualification.{key}", json.dumps(asdict(result)))


def trusted_by(store: Store, project_id: str, key: str) -> str:
    """Who lets the model's verdicts count in the project although it failed; empty for nobody."""
    return store.projects.note(f"model_trusted.{project_id}.{key}")


def trust_model(store: Store, project_id: str, key: str, words: str) -> None:
    """Let its verdicts count in the project, as `words` say; empty words undo that."""
    store.projects.save_note(f"model_trusted.{project_id}.{key}", words)
