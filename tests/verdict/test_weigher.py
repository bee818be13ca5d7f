"""Learned weights weigh the answers of a run: strangers get the mean, damage is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.errors import ConfigError
from core.schema.records import Stance
from core.verdict.consensus_weights import (
    NETWORK_FEATURES,
    STANCES,
    AnsweringAgent,
    AnswerNetwork,
    LearnedConsensusPolicy,
    LearnedWeights,
    PastAnswers,
    compute_answer_features,
    normalize_weights,
    parse_learned_weights,
    softmax,
)
from tests.fakes import make_case, make_view
from tests.verdict.test_answer_features import turn

VIEW = make_view(make_case("The tower is 512 m tall."), [])
ADA, BEN = AnsweringAgent("Agent Ada", rules="r"), AnsweringAgent("Agent Ben", "openai/x", "r")
GOOD = PastAnswers((18.0, 9.0, 0.0), (20.0, 20.0, 0.0))
BAD = PastAnswers((4.0, 9.0, 0.0), (20.0, 20.0, 0.0))
SIZES = st.lists(st.floats(0.0, 50.0), min_size=1, max_size=6)


def network(seed: int = 1) -> AnswerNetwork:
    random = np.random.default_rng(seed)
    wide = len(NETWORK_FEATURES)
    return AnswerNetwork(
        NETWORK_FEATURES,
        tuple(random.normal(size=wide).tolist()),
        tuple((random.random(wide) + 0.5).tolist()),
        tuple(map(tuple, random.normal(size=(wide, 3)).tolist())),
        tuple(random.normal(size=3).tolist()),
        tuple(random.normal(size=3).tolist()),
        0.3,
    )


def weigher(learned: LearnedWeights) -> LearnedConsensusPolicy:
    return LearnedConsensusPolicy(
        learned, {"Ada": ADA, "Ben": BEN, "Cleo": AnsweringAgent("Agent Cleo")}, 7
    )


@given(SIZES, st.lists(st.booleans(), min_size=6, max_size=6))
def test_weights_sum_to_one_and_none_is_negative(weights: list[float], known: list[bool]) -> None:
    found = normalize_weights(weights, known[: len(weights)])
    assert sum(found) == pytest.approx(1.0)
    assert min(found) >= 0.0
    strangers = [own for own, is_one in zip(found, known, strict=False) if not is_one]
    assert all(own == pytest.approx(strangers[0]) for own in strangers)


def test_who_has_no_record_gets_the_mean_of_those_who_have() -> None:
    learned = LearnedWeights("record", (ADA, BEN), (3.0, 1.0))
    turns = [turn(1, "Ada", "supported"), turn(2, "Ben", "supported"), turn(3, "Cleo", "unclear")]
    found = dict(weigher(learned).weights(VIEW, turns))
    assert found == pytest.approx({"Ada": 0.5, "Ben": 1 / 6, "Cleo": 1 / 3})
    assert weigher(learned).method == "record, weights 7"


def test_with_nobody_known_all_count_alike() -> None:
    learned = LearnedWeights("record", (AnsweringAgent("Agent Ada", rules="other rules"),), (3.0,))
    turns = [turn(1, "Ada", "supported"), turn(2, "Ben", "supported")]
    assert dict(weigher(learned).weights(VIEW, turns)) == {"Ada": 0.5, "Ben": 0.5}
    assert weigher(learned).weights(VIEW, []) == ()


def test_a_policy_reads_each_answer_with_the_past_of_who_gives_it() -> None:
    learned = LearnedWeights("policy", (ADA, BEN), past=(GOOD, BAD), whole=GOOD, policy=network())
    turns = [
        turn(1, "Ada", "supported", quotes=("verified",)),
        turn(2, "Ben", "hallucinated", "deny"),
    ]
    features = compute_answer_features(turns)
    rows = np.array(
        [
            [*features["Ada"].values(), GOOD.log_odds("supported", GOOD)],
            [*features["Ben"].values(), BAD.log_odds("hallucinated", GOOD)],
        ]
    )
    wanted = softmax(network().scores(rows), np.array([True, True]))
    found = dict(weigher(learned).weights(VIEW, turns))
    assert [found["Ada"], found["Ben"]] == pytest.approx(wanted.tolist())


@given(st.sampled_from(STANCES), st.integers(0, 40), st.integers(0, 40))
def test_a_short_past_is_drawn_to_that_of_all(stance: Stance, right: int, wrong: int) -> None:
    n = float(right + wrong)
    own = PastAnswers((float(right),) * 3, (n,) * 3)
    usual = PastAnswers((80.0, 80.0, 80.0), (100.0, 100.0, 100.0))
    none = PastAnswers((0.0,) * 3, (0.0,) * 3)
    low, high = sorted([right / n if n else 0.8, 81 / 102])
    share = 1 / (1 + np.exp(-own.log_odds(stance, usual)))
    assert low - 1e-2 <= share <= high + 1e-2
    assert none.log_odds(stance, usual) == pytest.approx(np.log(81 / 21))


def test_kept_weights_come_back_as_they_were() -> None:
    learned = LearnedWeights("policy", (ADA, BEN), past=(GOOD, BAD), whole=GOOD, policy=network())
    assert parse_learned_weights(json.loads(json.dumps(learned.to_plain()))) == learned


@pytest.mark.parametrize(
    "changed",
    [
        {"schema": 99},
        {"features_schema": 99},
        {"fixed": (1.0,)},
        {"fixed": (1.0, -1.0)},
        {"fixed": ("a", "b")},
    ],
)
def test_weights_that_do_not_fit_are_refused(changed: dict[str, object]) -> None:
    plain = LearnedWeights("record", (ADA, BEN), (3.0, 1.0)).to_plain() | changed
    with pytest.raises(ConfigError, match=r"[Ww]eights"):
        parse_learned_weights(plain)


def test_a_network_of_other_features_is_refused() -> None:
    other = replace(network(), names=("side", *NETWORK_FEATURES[1:-1], "colour"))
    plain = LearnedWeights("policy", (ADA,), past=(GOOD,), policy=other).to_plain()
    with pytest.raises(ConfigError, match="learn the weights anew"):
        parse_learned_weights(plain)
