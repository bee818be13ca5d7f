"""Rosters by name: an agent for every role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import InputError
from core.roles import Roster

if TYPE_CHECKING:
    from core.models.encoder import Embedder

BUILT_IN = "builtin"
ROSTER_WORDS = {
    BUILT_IN: "Built-in engine: rules, overlap and OCR. No key, no network, no language model."
}


def roster_named(name: str, encoder: Embedder) -> Roster:
    """The roster of that name.

    Raises:
        InputError: there is none; the message lists those there are.
    """
    if name != BUILT_IN:
        raise InputError(f"Expected a roster of {', '.join(ROSTER_WORDS)}; found “{name}”.")
    from core.builtin.context import BuiltInContextWriter
    from core.builtin.images import OcrImageReader
    from core.builtin.judge import BuiltInJudge
    from core.builtin.overlap_reader import OverlapReader
    from core.builtin.rules import RuleChecker
    from core.builtin.segmenter import BuiltInSegmenter
    from core.builtin.spans import PointSpanExtractor, VotingSpanAdjudicator

    return Roster(
        name=BUILT_IN,
        segmenter=BuiltInSegmenter(),
        image_reader=OcrImageReader(),
        context_writer=BuiltInContextWriter(),
        debaters={"Ada": RuleChecker(), "Ben": OverlapReader(encoder)},
        judge=BuiltInJudge(encoder),
        span_extractor=PointSpanExtractor(),
        span_adjudicator=VotingSpanAdjudicator(),
    )
