"""UQLM's scores of given responses. Runs in UQLM's own environment, which has nothing of the app.

`python -m tests.bench.uqlm_scores ROWS SCORES --api-base URL --model NAME` reads and writes the
files of `peer_files`. UQLM draws the samples and asks the judges itself; what it is asked to score
are the rows' responses, not ones that it generated. A method that fails on a row says why.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import math
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr
from uqlm import BlackBoxUQ
from uqlm.judges import LLMJudge

from tests.bench.peer_files import SAMPLES_METHOD, PeerRow, PeerScore, read_lines, write_lines

NLI_SCORERS = ("semantic_negentropy", "noncontradiction", "entailment", "semantic_sets_confidence")
JUDGE_TEMPLATES = ("true_false_uncertain", "true_false", "continuous", "likert")
ROLES = {"system": "system", "human": "user", "ai": "assistant"}
ROWS_AT_ONCE = 10  # UQLM sleeps a tenth of a second after each call of its own
SAMPLING_TEMPERATURE = 1.0
PATIENCE = 600.0
Names = tuple[str, ...]
Scored = list[PeerScore]


class ServedModel(BaseChatModel):
    """A model behind an OpenAI-compatible address; the same prompts give the same replies."""

    api_base: str
    served: str
    seed: int
    max_tokens: int
    temperature: float = 0.0
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _asked: Counter[str] = PrivateAttr(default_factory=Counter)
    _spent: Counter[str] = PrivateAttr(default_factory=Counter)

    @property
    def _llm_type(self) -> str:
        return "served"

    @property
    def spent(self) -> tuple[int, int]:
        """Calls and tokens so far."""
        return self._spent["calls"], self._spent["tokens"]

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Any:
        text = "\n".join(message.content for message in messages)
        with self._lock:
            self._asked[text] += 1
            self._spent["calls"] += 1
            key = f"{self.seed} {self._asked[text]} {text}".encode()
        body = {
            "model": self.served,
            "messages": [{"role": ROLES[m.type], "content": m.content} for m in messages],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": int.from_bytes(hashlib.sha256(key).digest()[:4], "big") // 2,
        }
        answer = httpx.post(f"{self.api_base}/chat/completions", json=body, timeout=PATIENCE)
        reply = answer.raise_for_status().json()
        with self._lock:
            self._spent["tokens"] += reply["usage"]["total_tokens"]
        content = reply["choices"][0]["message"]["content"]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content))])


def main() -> int:
    """Score all rows, some at a time, each of which is written when it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("scores", type=Path)
    parser.add_argument("--api-base", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--encoder", help="a sentence encoder: a folder, or a name of the Hub")
    parser.add_argument("--nli-model", help="a folder, or a name of the Hub")
    parser.add_argument("--bert-score", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # failures are written as such
    rows = read_lines(given.rows, PeerRow)
    model = ServedModel(
        api_base=given.api_base, served=given.model, seed=given.seed, max_tokens=given.max_tokens
    )
    options = {"sentence_transformer": given.encoder, "nli_model_name": given.nli_model}
    scorers = {
        names: BlackBoxUQ(
            llm=model,
            scorers=list(names),
            use_best=False,
            sampling_temperature=SAMPLING_TEMPERATURE,
            **{key: value for key, value in options.items() if value},
        )
        for names in _choose_scorers(given)
    }
    judges = {name: LLMJudge(llm=model, scoring_template=name) for name in JUDGE_TEMPLATES}
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[start : start + ROWS_AT_ONCE]
        found = _score_by_samples(some, model, scorers, given.samples)
        for name, judge in judges.items():
            found += _score_by_judge(some, model, f"judge {name}", judge)
        write_lines(given.scores, found)
        sys.stderr.write(f"UQLM: {start + len(some)} of {len(rows)} rows\n")
        sys.stderr.flush()
    return 0


def _choose_scorers(given: argparse.Namespace) -> list[Names]:
    """Return the scorers that can be used, those together that share a model and its work."""
    groups: list[Names] = [("exact_match",)]
    groups += [("cosine_sim",)] if given.encoder else []
    groups += [NLI_SCORERS] if given.nli_model else []
    return [*groups, *([("bert_score",)] if given.bert_score else [])]


def _score_by_samples(
    rows: Sequence[PeerRow], model: ServedModel, scorers: dict[Names, Any], count: int
) -> Scored:
    """Draw the samples once, and score the responses by their agreement with them."""

    def draw(some: Sequence[PeerRow]) -> Scored:
        prompts = [row.prompt for row in some]
        any_scorer = next(iter(scorers.values()))
        drawn = asyncio.run(any_scorer.generate_candidate_responses(prompts, count))
        return [
            PeerScore(row.id, SAMPLES_METHOD, samples=tuple(texts))
            for row, texts in zip(some, drawn, strict=True)
        ]

    samples = {one.row: one for one in _timed(rows, model, (SAMPLES_METHOD,), draw)}
    found = list(samples.values())
    sampled = [row for row in rows if samples[row.id].samples]
    for names, scorer in scorers.items():

        def score(some: Sequence[PeerRow], names: Names = names, scorer: Any = scorer) -> Scored:
            texts = [row.response for row in some]
            drawn = [list(samples[row.id].samples) for row in some]
            data = scorer.score(texts, drawn, show_progress_bars=False).data
            return [
                _build_score(row, name, data[name][number])
                for number, row in enumerate(some)
                for name in names
            ]

        for one in _timed(sampled, model, names, score):
            cost = samples[one.row]
            seconds = one.seconds + cost.seconds
            found.append(replace(one, seconds=seconds, calls=cost.calls, tokens=cost.tokens))
        failed = [samples[row.id] for row in rows if not samples[row.id].samples]
        found += [replace(one, method=name) for one in failed for name in names]
    return found


def _score_by_judge(rows: Sequence[PeerRow], model: ServedModel, method: str, judge: Any) -> Scored:
    def score(some: Sequence[PeerRow]) -> Scored:
        prompts, responses = [row.prompt for row in some], [row.response for row in some]
        told = asyncio.run(judge.judge_responses(prompts, responses))
        pairs = zip(some, told["scores"], told["judge_responses"], strict=True)
        return [_build_score(row, method, value, str(reply)) for row, value, reply in pairs]

    return _timed(rows, model, (method,), score)


def _build_score(row: PeerRow, method: str, value: Any, reply: str = "") -> PeerScore:
    """NaN is UQLM's word for a reply that it could not read."""
    if value is None or math.isnan(value):
        return PeerScore(row.id, method, cause=f"unreadable: {reply[:200]}")
    return PeerScore(row.id, method, float(value))


def _timed(
    rows: Sequence[PeerRow],
    model: ServedModel,
    methods: Names,
    score: Callable[[Sequence[PeerRow]], Scored],
) -> Scored:
    """Score the rows together, each with its share of the cost; one by one where that fails."""
    if not rows:
        return []
    began, (calls, tokens) = time.perf_counter(), model.spent
    try:
        found = score(rows)
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is its failure on that row
        if len(rows) > 1:
            return [one for row in rows for one in _timed([row], model, methods, score)]
        why = f"failed: {error!r}"[:200]
        found = [PeerScore(rows[0].id, method, cause=why) for method in methods]
    seconds = (time.perf_counter() - began) / len(rows)
    calls_each, tokens_each = (
        (now - before) / len(rows) for now, before in zip(model.spent, (calls, tokens), strict=True)
    )
    return [replace(one, seconds=seconds, calls=calls_each, tokens=tokens_each) for one in found]


if __name__ == "__main__":
    sys.exit(main())
