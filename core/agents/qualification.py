"""The judge test: whether a language model can judge at all, by twelve claims with their evidence.

A reply that is held to a schema always parses, so a model that only guesses would give confident
verdicts. One that fails still speaks, but its verdict is `unclear` until a lead waives that for the
project. A failure stands for model and address until the model is tested anew; who passed with
another prompt was not tested with the one in force.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from core.agents.agent_runner import AgentContext
from core.baseline.wording import format_count, join_names
from core.llm.call import provider_of
from core.llm.client import ModelClient
from core.llm.keys import Keys
from core.llm.limits import SpendingCaps
from core.llm.local_server import PROVIDER
from core.llm.metering import CallAccount, MeteredClient
from core.llm.prompting import Fence, PromptBook
from core.runtime.concurrency import StopSignal, merge_streams
from core.runtime.errors import ReplyError, ReviewError
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
    """How a model did; `unreadable` replies count as wrong. `at` is in seconds since 1970.

    `prompt` is the hash of the prompt that asked. Results of earlier versions lack the settings.
    """

    model: str
    right: int
    unreadable: int
    of: int
    at: float
    prompt: str = ""
    temperature: float | None = None
    max_tokens: int | None = None

    @property
    def has_passed(self) -> bool:
        """True where it judged more cases rightly than a guess would."""
        return self.right >= MIN_RIGHT_ANSWERS

    @property
    def words(self) -> str:
        """The result in a few words: “5 of 12 right, 2 unreadable”."""
        lost = f", {self.unreadable} unreadable" if self.unreadable else ""
        return f"{self.right} of {self.of} right{lost}"


@dataclass(frozen=True)
class ModelStanding:
    """What lets a model's verdicts count in a project, or not.

    `result` is of its judge test, None where it was not tested; `prompt` is the hash of the prompt
    in force. `waiver` says who lets its verdicts count although it failed; empty for nobody.
    """

    agent: AgentConfig
    prompt: str
    result: Qualification | None
    waiver: str

    @property
    def key(self) -> str:
        """A digest of model and address."""
        return _get_keys(self.agent, self.prompt)[0]

    @property
    def has_failed(self) -> bool:
        """True where it failed the judge test, by whatever prompt."""
        return self.result is not None and not self.result.has_passed

    @property
    def has_passed(self) -> bool:
        """True where it passed with the prompt in force."""
        return not self.has_failed and self.result is not None and self.result.prompt == self.prompt

    @property
    def may_decide(self) -> bool:
        """True unless it failed the judge test and nobody waived that."""
        return not self.has_failed or bool(self.waiver)

    @property
    def is_tested_in_runs(self) -> bool:
        """True if a run has to test it: the model in the box costs nothing to test."""
        is_open = not (self.has_failed or self.has_passed or self.waiver)
        return is_open and provider_of(self.agent) == PROVIDER

    @property
    def words(self) -> str:
        """The result, with whatever the model was tested with that the agent has not now."""
        if self.result is None:
            return "not tested"
        then, agent = self.result, self.agent
        differences = (
            ("another prompt", then.prompt, self.prompt),
            (f"temperature {then.temperature}", then.temperature, agent.temperature),
            (
                f"at most {format_count(then.max_tokens or 0, 'token')} a reply",
                then.max_tokens,
                agent.max_tokens,
            ),
        )
        changed = [words for words, old, new in differences if old not in (None, "", new)]
        return f"{then.words}{f' (tested with {join_names(changed)})' if changed else ''}"


def qualify_model(
    agent: AgentConfig, context: AgentContext, stop: StopSignal, now: float
) -> Qualification:
    """Ask the model about all cases as a single judge, several at once.

    Raises:
        ModelError: the service failed; there is no result.
        Stopped: `stop` was set.
    """
    from core.agents.llm_judge import LlmJudge

    judge = LlmJudge(agent, replace(context, judge_prompts=(PROMPT,)))
    has_broken_off = threading.Event()  # the service failed: the other cases are not asked

    def judge_case(number: int) -> Iterator[tuple[int, Label | None]]:
        if has_broken_off.is_set():
            return
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
        except ReviewError:
            has_broken_off.set()
            raise

    streams = [partial(judge_case, number) for number in range(len(CASES))]
    labels = dict(merge_streams(streams, workers=AT_ONCE))
    right = sum(labels[number] == label for number, (_, _, label) in enumerate(CASES))
    unreadable = sum(label is None for label in labels.values())
    return Qualification(
        agent.model, right, unreadable, len(CASES), now,
        context.book.prompt(PROMPT, "en").hash, agent.temperature, agent.max_tokens,
    )  # fmt: skip


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

    `account.run_id` is new for each test; no earlier reply is taken for an answer.

    Raises:
        ReviewError: a service failed, or a cap leaves no room; what was tested before is kept.
        Stopped: `stop` was set.
    """
    with open_store(home) as store:
        settings = store.projects.settings()
        book = PromptBook(store.prompt_edits.of_project(account.project_id))
    sender = ModelClient(keys, requests_per_second=settings.requests_per_second)
    caps = SpendingCaps.of(settings)
    client = MeteredClient(sender, home, account, caps, clock, is_fresh=True)
    context = AgentContext(client, book, Fence.of_run(account.run_id), home)
    for agent in list_deciding_models(roster):
        result = qualify_model(agent, context, stop, clock())
        with open_store(home) as store, store.writing():
            save_qualification(store, agent, result)
        yield result


def list_deciding_models(roster: RosterConfig) -> tuple[AgentConfig, ...]:
    """Return the roster's models that decide in some protocol, each once."""
    debaters = (debater.seat for debater in roster.debaters)
    seats = (roster.judge, roster.tool_picker, roster.reflector, *debaters)
    # reversed, so that the judge's settings win
    models = {_get_keys(agent, "")[0]: agent for agent in reversed(seats) if not agent.is_built_in}
    return tuple(models.values())


def _get_keys(agent: AgentConfig, prompt: str) -> tuple[str, str]:
    """Return digests of model and address, and of these with the prompt and the cases."""
    # As earlier versions kept a result.
    earlier = [agent.model, agent.api_base.rstrip("/"), prompt, CASES]
    wholes = (json.dumps(parts).encode() for parts in (_name_endpoint(agent), earlier))
    first, second = (hashlib.sha256(whole).hexdigest()[:16] for whole in wholes)
    return first, second


def _name_endpoint(agent: AgentConfig) -> tuple[str, str]:
    """Return model and address in one spelling of the many that reach the same server."""
    model = agent.model.lower()
    if not agent.api_base:
        return model, ""
    parts = urlsplit(agent.api_base.lower())
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127."):
        host = "127.0.0.1"
    path = "/".join(part for part in parts.path.split("/") if part not in ("", "."))
    return model.rpartition("/")[2], f"{host}:{parts.port}/{path}"


def load_standing(
    store: Store, project_id: str, agent: AgentConfig, book: PromptBook
) -> ModelStanding:
    """Return how the model stands in the project, whose prompts are those of the `book`.

    Earlier versions kept a result for its prompt alone: one for the shipped prompt is found, too.
    """
    prompt, shipped = (each.prompt(PROMPT, "en").hash for each in (book, PromptBook()))
    keys = _get_keys(agent, prompt)
    results = [_load_result(store, key, prompt) for key in reversed(keys)]
    if not any(results):
        results = [_load_result(store, _get_keys(agent, shipped)[1], shipped)]
    found = sorted(filter(None, results), key=lambda result: result.has_passed)  # failures first
    waivers = (store.projects.note(f"model_trusted.{project_id}.{key}") for key in keys)
    return ModelStanding(
        agent, prompt, found[0] if found else None, next(filter(None, waivers), "")
    )


def _load_result(store: Store, key: str, prompt: str) -> Qualification | None:
    kept = store.projects.note(f"qualification.{key}")
    try:
        result = msgspec.json.decode(kept, type=Qualification) if kept else None
    except (msgspec.MsgspecError, RecursionError):  # by hand, or another version: not tested
        return None
    return replace(result, prompt=result.prompt or prompt) if result else None


def save_qualification(store: Store, agent: AgentConfig, result: Qualification) -> None:
    """Keep the result for the whole home, as its prompt's and the newest; within `writing()`."""
    for key in _get_keys(agent, result.prompt):
        store.projects.save_note(f"qualification.{key}", json.dumps(asdict(result)))


def save_waiver(store: Store, project_id: str, standing: ModelStanding, words: str) -> None:
    """Let a failed model's verdicts count in the project, as `words` say; empty words undo that."""
    own, earlier = (
        f"model_trusted.{project_id}.{key}" for key in _get_keys(standing.agent, standing.prompt)
    )
    store.projects.save_note(own, words)
    store.projects.save_note(earlier, "")  # of an earlier version, for this prompt alone
