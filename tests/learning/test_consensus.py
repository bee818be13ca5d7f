"""Weights of agents: who is known to be right counts more, and p means what it says."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.learning.agent_answers import load_decided_runs
from core.learning.consensus import (
    WEIGHTINGS,
    VoteMatrix,
    Weighting,
    build_weighting_measures,
    compare_weightings,
    cross_fit_weighting,
    fit_weighting,
    parse_consensus_weights,
)
from core.learning.learned_consensus import (
    CONSENSUS_RECORD_KIND,
    activate_weights,
    describe_missing_cases,
    form_opinion,
    learn_weights,
    parse_stored_consensus,
    summarize_agent_weights,
)
from core.learning.metrics import compute_log_losses, deal_folds, number_names
from core.runtime.errors import ConfigError, InputError, NotAllowed
from core.schema.records import Label, Member, Stance
from core.schema.run_state import fold_events
from core.store import Store, open_store
from core.store.versions import NOTHING_LEARNED
from tests.learning.recorded_runs import Told, tell

ACCURACIES = (0.9, 0.8, 0.6, 0.55, 0.5)


def synthetic(
    n: int = 600, accuracies: tuple[float, ...] = ACCURACIES, seed: int = 3
) -> VoteMatrix:
    """Agents that err independently, some silent or unclear; two cases to a group."""
    random = np.random.default_rng(seed)
    labels = (random.random(n) < 0.4).astype(float)
    right = random.random((n, len(accuracies))) < np.array(accuracies)
    said = np.where(right, labels[:, None], 1.0 - labels[:, None])
    said = np.where(random.random(said.shape) < 0.05, 0.5, said)
    said = np.where(random.random(said.shape) < 0.05, np.nan, said)
    return VoteMatrix(
        tuple(f"agent {a}" for a in accuracies),
        said,
        tuple(("claim", "long")[i % 2] for i in range(n)),
        tuple(f"group {i // 2}" for i in range(n)),
        labels,
    )


def figure(votes: VoteMatrix, p: np.ndarray, name: str) -> float:
    return float(
        build_weighting_measures(votes.labels, p, is_probability=True)[name](
            np.ones((1, len(votes)))
        )[0]
    )


@pytest.mark.parametrize("weighting", ["history", "stack"])
def test_known_accuracies_beat_all_alike_and_p_is_calibrated(weighting: Weighting) -> None:
    votes = synthetic()
    p, alike = cross_fit_weighting(votes, weighting, 1), cross_fit_weighting(votes, "uniform", 1)
    better = compute_log_losses(votes.labels == 1, alike) - compute_log_losses(votes.labels == 1, p)
    assert better.mean() > 3 * better.std() / len(better) ** 0.5
    assert figure(votes, p, "auroc") > figure(votes, alike, "auroc")
    assert figure(votes, p, "ece") < 0.06


def test_who_was_right_more_often_counts_more() -> None:
    votes = synthetic()
    for weighting in ("history", "stack"):
        weights = fit_weighting(votes, weighting)
        parts = weights.parts(np.ones((1, 5)), ["claim"])[0]
        assert parts[0] > parts[1] > max(parts[2:]), weighting
        assert abs(parts[4]) < 0.4 * parts[0], "a coin counts for next to nothing"


def test_agents_that_are_mostly_wrong_are_not_believed_the_other_way_round() -> None:
    votes = synthetic(accuracies=(0.2, 0.3, 0.3))
    p = fit_weighting(votes, "uniform").p(votes.said, votes.kinds)
    assert np.ptp(p) == pytest.approx(0.0)
    assert p[0] == pytest.approx(votes.labels.mean(), abs=0.02)


def test_copies_of_one_agent_are_not_counted_as_many() -> None:
    votes = synthetic(accuracies=(0.75,))
    many = VoteMatrix(
        tuple(f"copy {i}" for i in range(8)), np.repeat(votes.said, 8, axis=1),
        votes.kinds, votes.groups, votes.labels,
    )  # fmt: skip
    for weighting in ("history", "stack"):
        p = cross_fit_weighting(many, weighting, 1)
        assert figure(many, p, "ece") < 0.06, weighting
        assert p.max() < 0.9


def test_an_agent_that_is_good_on_one_kind_only_counts_there() -> None:
    votes = synthetic(accuracies=(0.5, 0.7))
    said = votes.said.copy()
    claims = np.array([kind == "claim" for kind in votes.kinds])
    said[claims, 0] = votes.labels[claims]
    votes = VoteMatrix(votes.agents, said, votes.kinds, votes.groups, votes.labels)
    for weighting in ("history", "stack"):
        weights = fit_weighting(votes, weighting)
        (claim,), (long,) = (
            weights.parts(np.array([[1.0, np.nan]]), [kind])[:, 0] for kind in ("claim", "long")
        )
        assert claim > 4 * abs(long), weighting


def test_features_help_where_they_tell() -> None:
    votes = synthetic(accuracies=(0.6,))
    random = np.random.default_rng(5)
    told = votes.labels + random.normal(0, 0.7, len(votes))
    told[::9] = np.nan
    richer = VoteMatrix(
        votes.agents, votes.said, votes.kinds, votes.groups, votes.labels, told[:, None], ("told",)
    )
    with_it, without = (
        cross_fit_weighting(richer, "stack", 1),
        cross_fit_weighting(votes, "stack", 1),
    )
    assert figure(votes, with_it, "auroc") > figure(votes, without, "auroc") + 0.1


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_weights_are_plain_numbers_and_come_back_the_same(weighting: Weighting) -> None:
    votes = synthetic(200)
    weights = fit_weighting(votes, weighting)
    back = parse_consensus_weights(json.loads(json.dumps(asdict(weights), allow_nan=False)))
    assert back == weights
    known = weights.p(votes.said, votes.kinds, votes.features)
    assert np.array_equal(back.p(votes.said, votes.kinds, votes.features), known)
    strange = weights.p(np.full((1, 5), np.nan), ["never seen"])
    assert ((known > 0) & (known < 1)).all()
    assert 0.05 < strange[0] < 0.95, "nobody spoke: nothing is sure"


@pytest.mark.parametrize("key", ["schema", "table", "offsets", "names"])
def test_weights_that_do_not_fit_together_are_refused(key: str) -> None:
    plain = asdict(fit_weighting(synthetic(200), "history"))
    wrong: dict[str, object] = {"schema": 2, "table": [], "offsets": [], "names": ["x"]}
    with pytest.raises(ConfigError, match="learn them anew"):
        parse_consensus_weights(json.loads(json.dumps(plain | {key: wrong[key]})))


@given(
    sizes=st.lists(st.integers(1, 5), min_size=5, max_size=40),
    seed=st.integers(0, 9),
    wrong=st.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_no_group_lies_in_two_folds(sizes: list[int], seed: int, wrong: float) -> None:
    groups = [f"g{n}" for n, size in enumerate(sizes) for _ in range(size)]
    labels = (np.random.default_rng(seed).random(len(groups)) < wrong).astype(float)
    found = deal_folds(groups, labels, seed)
    assert set(found.tolist()) == set(range(5)), "each fold has some"
    for group in set(groups):
        assert len({f for f, own in zip(found, groups, strict=True) if own == group}) == 1
    assert np.array_equal(found, deal_folds(groups, labels, seed))


def test_what_a_fold_says_does_not_depend_on_its_own_labels() -> None:
    votes = synthetic(200)
    fold = deal_folds(votes.groups, votes.labels, 1)
    for weighting in WEIGHTINGS:
        p = cross_fit_weighting(votes, weighting, 1)
        held = fold == 2
        alone = fit_weighting(votes.rows(~held), weighting)
        assert np.allclose(p[held], alone.p(votes.said[held], votes.rows(held).kinds))


def test_the_simplest_weighting_is_proposed_where_none_is_shown_to_be_better() -> None:
    alike = compare_weightings(synthetic(200, (0.7, 0.7, 0.7)), 1)
    assert alike.proposed == "uniform"
    unlike = compare_weightings(synthetic(), 1)
    assert unlike.proposed != "uniform"
    own = unlike.figures[unlike.proposed]
    assert own["log_loss"][0] < unlike.figures["always"]["log_loss"][0]
    for value, low, high in (own[name] for name in ("auroc", "balanced_accuracy", "log_loss")):
        assert low < value < high
    error, _, most = own["ece"]
    assert error < 2 * most, "near what chance alone would show"
    assert alike.figures["uniform"]["ece"][1] < alike.figures["uniform"]["ece"][2] < 0.2
    assert unlike.single == "agent 0.9"
    assert unlike.groups == 300


def test_figures_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

    votes = synthetic(300)
    p = cross_fit_weighting(votes, "history", 1)
    tied = np.clip(np.round(p, 1), 0.05, 0.95)
    assert figure(votes, tied, "auroc") == pytest.approx(roc_auc_score(votes.labels, tied))
    assert figure(votes, p, "log_loss") == pytest.approx(log_loss(votes.labels, p))
    assert figure(votes, p, "balanced_accuracy") == pytest.approx(
        balanced_accuracy_score(votes.labels, p > 0.5)
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"said": np.ones((3, 2))}, "give every case its row"),
        ({"said": np.full((4, 2), 1.5)}, "numbers from 0 to 1"),
        ({"labels": np.array([0.0, 1.0, 0.5, 0.0])}, "labels 0"),
    ],
)
def test_votes_that_make_no_sense_are_refused(change: dict[str, object], words: str) -> None:
    whole: dict[str, object] = {
        "agents": ("a", "b"), "said": np.ones((4, 2)), "kinds": ("",) * 4,
        "groups": tuple("wxyz"), "labels": np.array([0.0, 1.0, 1.0, 0.0]),
    }  # fmt: skip
    with pytest.raises(InputError, match=words):
        VoteMatrix(**(whole | change))  # type: ignore[arg-type]


def test_one_label_or_too_few_groups_are_refused() -> None:
    votes = synthetic(100)
    with pytest.raises(InputError, match="one label"):
        fit_weighting(votes.rows(votes.labels == 1.0), "stack")
    with pytest.raises(InputError, match="at least 5 groups"):
        cross_fit_weighting(votes.rows(np.arange(4)), "history", 1)


def test_names_are_numbered_in_order() -> None:
    assert number_names(["b", "a", "b"]).tolist() == [1, 0, 1]


SIDES: tuple[Label, Label] = ("supported", "hallucinated")


def told(count: int, seed: int = 1) -> list[Told]:
    """Ada is right on nine of ten cases, Ben on every other one, the judge on eight of ten."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        is_wrong = number % 2 == 0

        def says(share: float, is_wrong: bool = is_wrong) -> Stance:
            return SIDES[is_wrong == (chance.random() < share)]

        turns = (("Ada", says(0.9)), ("Ben", says(0.5)))
        found.append(Told(turns, says(0.8), SIDES[is_wrong], claim=f"Claim {number}."))
    return found


@pytest.fixture
def store(home: Path) -> Store:
    return open_store(home)


def project_of(store: Store) -> str:
    return store.projects.all()[0].id


def test_weights_are_learned_used_on_a_run_and_put_back(store: Store) -> None:
    ids = tell(store, told(80))
    project_id = project_of(store)
    rows = load_decided_runs(store, project_id, {})
    assert describe_missing_cases(rows) == ""
    number = learn_weights(store, project_id, rows, "Mira", 5.0)
    learned = store.learned.get(number)
    assert learned is not None
    assert len(learned.body["decisions"]) == 80
    assert learned.body["compared"]["groups"] == 80
    assert store.learned.in_use(CONSENSUS_RECORD_KIND, project_id) is None, (
        "learned is not yet used"
    )
    activate_weights(store, project_id, number, by="Mira", reason="Ada is good", now=6.0)
    used = store.learned.in_use(CONSENSUS_RECORD_KIND, project_id)
    assert used is not None
    progress = fold_events(event for _, event in store.runs.events(ids[0]))
    found = form_opinion(used, progress)
    assert found is not None
    assert 0 < found.p < 1
    assert (found.n, found.at, found.unknown) == (80, 5.0, ())
    said = {agent.name: value for agent, value, _ in found.parts}
    assert set(said) == {"Reader Ada", "Reader Ben", "Judge", "Classifier"}
    activate_weights(store, project_id, NOTHING_LEARNED, by="Mira", reason="not yet", now=7.0)
    assert store.learned.in_use(CONSENSUS_RECORD_KIND, project_id) is None
    assert [c.reason for c in store.learned.choices(CONSENSUS_RECORD_KIND, project_id)] == [
        "not yet",
        "Ada is good",
    ]


def test_who_is_right_more_often_is_seen_to_count_more(store: Store) -> None:
    tell(store, told(160))
    number = learn_weights(
        store, project_of(store), load_decided_runs(store, project_of(store), {}), "Mira", 5.0
    )
    learned = store.learned.get(number)
    assert learned is not None
    assert learned.body["compared"]["proposed"] != "uniform"
    counts = [
        row["agent"].name for row in summarize_agent_weights(*parse_stored_consensus(learned))
    ]
    assert counts[0] == "Reader Ada"
    assert counts.index("Reader Ben") > 1


def test_a_run_of_other_agents_has_no_consensus(store: Store) -> None:
    tell(store, told(60))
    project_id = project_of(store)
    number = learn_weights(store, project_id, load_decided_runs(store, project_id, {}), "Mira", 5.0)
    learned = store.learned.get(number)
    other = replace(told(1)[0], models={"Ada": "openai/x", "Ben": "openai/y"}, classifier="v9")
    (run_id,) = tell(store, [other])
    progress = fold_events(event for _, event in store.runs.events(run_id))
    assert learned is not None
    assert form_opinion(learned, progress) is None, "only the judge is known"


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "40 more decided cases, among them 10 hallucinated and 10 supported"),
        (12, "28 more decided cases, among them 4 hallucinated and 4 supported"),
        (30, "10 more decided cases"),
        (40, ""),
    ],
)
def test_what_is_missing_is_said(store: Store, count: int, words: str) -> None:
    tell(store, told(count) or told(1)[:0])
    rows = load_decided_runs(store, project_of(store), {}) if count else []
    assert describe_missing_cases(rows) == words
    if words:
        with pytest.raises(InputError, match="can be learned after"):
            learn_weights(store, project_of(store), rows, "Mira", 5.0)


def test_only_a_lead_learns_and_chooses_and_gives_a_reason(store: Store) -> None:
    tell(store, told(40))
    project_id = project_of(store)
    with store.writing():
        store.projects.set_member(Member(project_id, "Karl", "annotator", 1.0))
    rows = load_decided_runs(store, project_id, {})
    with pytest.raises(NotAllowed):
        learn_weights(store, project_id, rows, "Karl", 5.0)
    number = learn_weights(store, project_id, rows, "Mira", 5.0)
    with pytest.raises(NotAllowed):
        activate_weights(store, project_id, number, by="Karl", reason="I like it", now=6.0)
    with pytest.raises(InputError, match="reason"):
        activate_weights(store, project_id, number, by="Mira", reason="  ", now=6.0)
    with pytest.raises(InputError, match="no consensus of number"):
        activate_weights(store, project_id, number + 1, by="Mira", reason="try", now=6.0)
    assert store.learned.in_use(CONSENSUS_RECORD_KIND, project_id) is None
