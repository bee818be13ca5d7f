"""The readers that ship: which pair goes to which, and that the multilingual one reads."""

from __future__ import annotations

import numpy as np
import pytest

from core.baseline.entailment import (
    MultilingualReader,
    OnnxReader,
    Pair,
    PairReading,
    PairwiseReader,
)
from core.baseline.shipped_reader import ENGLISH_DIR, ReaderByLanguage, load_reader
from core.baseline.tokens import LEAST_EVIDENCE, MAX_TOKENS, encode_pair, load_vocabulary
from core.runtime.config import E5_DIR

READ = PairReading(0.8, 0.1, 0.1)
NLI = {
    "de": (
        "Ein Mann mit grauem Hut spielt auf dem Marktplatz Gitarre.",
        "Ein Mann spielt draußen ein Instrument.",
        "Der Mann schläft zu Hause in seinem Bett.",
    ),
    "es": (
        "Dos niñas comen helado sentadas en un banco del parque.",
        "Unas niñas están comiendo.",
        "Las niñas no están comiendo nada.",
    ),
    "zh": (
        "一位穿红衣服的女士正在公园里遛狗。",
        "一位女士在户外带着狗。",
        "这位女士正在家里睡觉。",
    ),
}


class Noting(PairwiseReader):
    """Remembers what it was asked."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.id, self.asked = name, list[Pair]()

    def read_one(self, pair: Pair) -> PairReading:
        self.asked.append(pair)
        return READ

    def knows(self, text: str) -> bool:
        return True


def test_each_pair_goes_to_the_reader_of_its_language() -> None:
    english, other = Noting("english"), Noting("other")
    reader = ReaderByLanguage(english, other)
    pairs = [
        ("The bridge was closed to lorries in 1998.", "Lorries may not use the bridge."),
        ("Die Brücke wurde 1998 für Lastwagen gesperrt.", "Lastwagen dürfen nicht hinüber."),
        ("桥于1998年关闭。", "卡车不能过桥。"),
        ("512 m", "512"),
        ("The bridge was closed to lorries in 1998.", "Les camions ne doivent pas le franchir."),
    ]
    assert reader.read(pairs) == [READ] * 5
    assert set(english.asked) == {pairs[0], pairs[3]}, "what has no language is English's"
    assert set(other.asked) == {*pairs[1:3], pairs[4]}, "both sides must be English"
    assert reader.id == "english-other"


@pytest.mark.parametrize("language", NLI)
def test_other_languages_than_english_are_read(language: str) -> None:
    evidence, right, wrong = NLI[language]
    reader = load_reader()
    assert reader.knows(evidence)
    good, bad = reader.read([(evidence, right), (evidence, wrong)])
    assert good.supported > bad.supported
    assert bad.contradicted > good.contradicted
    assert sum((good.supported, good.contradicted, good.neutral)) == pytest.approx(1.0)


def test_a_language_that_the_base_never_saw_is_not_known() -> None:
    assert not load_reader().knows("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᎴ ᏗᎪᏪᎵ ᎤᏍᏗ")
    assert not load_reader().knows("Il-belt għandha ħafna toroq qodma u knejjes sbieħ ħafna.")


def test_words_are_doubted_where_they_stand() -> None:
    claim = "Der Turm ist 412 Meter hoch."
    (reading,) = MultilingualReader().read([("Der Turm ist 512 Meter hoch.", claim)])
    assert "".join(claim[word.start : word.end] for word in reading.words) == claim.replace(" ", "")
    assert all(0.0 <= word.p <= 1.0 for word in reading.words)


def test_a_claim_longer_than_the_model_reads_is_cut_and_read() -> None:
    (reading,) = OnnxReader(ENGLISH_DIR).read([("It is a ship.", "It is a ship. " * 400)])
    assert reading.supported + reading.contradicted + reading.neutral == pytest.approx(1.0)


def test_a_long_claim_leaves_room_for_evidence() -> None:
    tokenizer = load_vocabulary(E5_DIR).tokenizer
    item = encode_pair("quelle " * 400, "behauptung " * 400, tokenizer)
    assert len(item.ids) == MAX_TOKENS
    assert item.claim_start == 1 + LEAST_EVIDENCE + 2
    short = encode_pair("Quelle.", "Behauptung.", tokenizer)
    assert np.all(np.diff([start for start, _ in short.offsets]) >= 0)
