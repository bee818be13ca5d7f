"""A PDF of fifty dense pages of our own making, and a claim that one of its sentences denies."""

from __future__ import annotations

import random
from pathlib import Path

from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer

PAGES = 50
PARAGRAPHS = 6
SENTENCES = 6
TOWNS = "Arlen Brisk Corvik Dunmore Ester Falk Gorse Hallow Istra Jarrow Kelda Lorn Mirren".split()
WORKS = "bridge|harbour|library|tram line|water works|mill|observatory|market hall".split("|")
TEMPLATES = (
    "The {work} of {town} was opened in {year} after {n} months of building.",
    "In {year} the council of {town} set aside {n} thousand crowns for the {work}.",
    "Visitors from {town} crossed the {work} about {n} times a day, more than in any year before.",
    "An engineer from {town} proposed to widen the {work} by {n} metres, which was not done.",
    "The {work} stood empty for {n} weeks while the people of {town} argued about its use.",
    "Records of {town} name {n} workers at the {work}, most of them from the hills.",
    "By {year} the roof of the {work} in {town} had been mended {n} times.",
)
FACT = "The tide mill at Lorn ground 840 tonnes of barley in 1911, its best year."
CLAIM = "The tide mill at Lorn ground 480 tonnes of barley in 1911."
FACT_PAGE = 37


def make_thick_pdf(path: Path, seed: int = 7) -> None:
    """Write the PDF; the same seed gives the same text."""
    chance = random.Random(seed)
    style = getSampleStyleSheet()["BodyText"]
    story: list[object] = []
    for page in range(1, PAGES + 1):
        for number in range(PARAGRAPHS):
            sentences = [_sentence(chance) for _ in range(SENTENCES)]
            if page == FACT_PAGE and number == 2:
                sentences[3] = FACT
            story += [Paragraph(" ".join(sentences), style), Spacer(1, 8)]
        story.append(PageBreak())
    SimpleDocTemplate(str(path), pagesize=A4, invariant=1).build(story[:-1])


def _sentence(chance: random.Random) -> str:
    return chance.choice(TEMPLATES).format(
        work=chance.choice(WORKS),
        town=chance.choice(TOWNS),
        year=chance.randint(1820, 1990),
        n=chance.randint(3, 960),
    )
