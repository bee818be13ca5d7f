"""Readers that people bring, and those that ship: what they are told apart by, what they read."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from core.__main__ import main
from core.baseline.entailment import (
    ENGLISH_DIR,
    BaseReader,
    EntailmentReading,
    EvidenceClaimPair,
    LanguageRoutingReader,
    MultilingualReader,
    OnnxReader,
    choose_reader,
    import_if_new,
    import_reader,
    list_reader_folders,
    load_reader,
    load_reader_choice,
    parse_class_labels,
)
from core.baseline.tokenizer import MAX_TOKENS, MIN_EVIDENCE_TOKENS, encode_pair, load_vocabulary
from core.runtime.config import E5_DIR
from core.runtime.errors import InputError
from core.store import open_store
from tests.baseline.small_models import CONSISTENCY, INFERENCE, TURNED, written
from tests.tools.corpus import table

EVIDENCE, CLAIM = "the bridge is 512 m long", "the bridge is 412 m long"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "labels"),
    [("bert", INFERENCE), ("deberta", TURNED), ("roberta", CONSISTENCY), ("t5", TURNED)],
)
def test_a_classifier_reads_as_it_did_before_its_export(
    tmp_path: Path, architecture: str, labels: dict[int, str]
) -> None:
    import torch
    from transformers import AutoTokenizer

    model = written(tmp_path / "model", architecture, labels)
    card = import_reader(str(tmp_path / "model"), tmp_path / "reader")
    (reading,) = OnnxReader(tmp_path / "reader").read([(EVIDENCE, CLAIM)])
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    given = tokenizer(EVIDENCE, CLAIM, return_tensors="pt")
    with torch.no_grad():
        logits = model(**{name: given[name] for name in card["inputs"]}).logits
    p = torch.softmax(logits[0], -1).tolist()
    by_name = {name.lower(): share for name, share in zip(labels.values(), p, strict=True)}
    expected = by_name.get("entailment", by_name.get("label_1"))
    assert reading.supported == pytest.approx(expected, abs=0.03)  # int8
    assert reading.supported + reading.contradicted + reading.neutral == pytest.approx(1.0)


@pytest.mark.slow
def test_a_token_classifier_says_which_words_it_doubts(tmp_path: Path) -> None:
    written(tmp_path / "model", "modernbert", CONSISTENCY)
    import_reader(str(tmp_path / "model"), tmp_path / "reader")
    reader = OnnxReader(tmp_path / "reader")
    (reading,) = reader.read([(EVIDENCE, CLAIM)])
    assert reader.marks_words
    assert [CLAIM[word.start : word.end] for word in reading.words] == CLAIM.split()
    assert reading.supported == pytest.approx(1 - max(word.p for word in reading.words))


def test_labels_are_read_by_their_names_whatever_their_order() -> None:
    turned = parse_class_labels({0: "entailment", 1: "not_entailment"}, is_tokens=False)
    assert (turned.supported, turned.contradicted) == ((0,), (1,))
    inference = parse_class_labels(INFERENCE, is_tokens=False)
    assert (inference.supported, inference.neutral, inference.contradicted) == ((2,), (1,), (0,))
    with pytest.raises(InputError, match="labels name support"):
        parse_class_labels({0: "positive", 1: "negative"}, is_tokens=False)


def test_what_is_no_model_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="Expected a sequence or token classifier"):
        import_reader(str(tmp_path / "empty"), tmp_path / "reader")
    assert not (tmp_path / "reader").exists()
    with pytest.raises(InputError, match="Expected a reader of shipped; found “nobody”"):
        import_if_new(tmp_path / "home", "nobody")


@pytest.mark.slow
def test_a_reader_is_brought_calibrated_chosen_and_used(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "mine", "bert", INFERENCE)
    _write_set(tmp_path / "data")
    for_home = ["--home", str(home), "--json"]
    assert main(["reader", "import", str(tmp_path / "mine"), *for_home]) == 0
    assert list(list_reader_folders(home)) == ["mine"]
    capsys.readouterr()
    calibrated = ["calibrate", "mine", "--dataset", "fever_symmetric", "--path"]
    assert main(["reader", *calibrated, str(tmp_path / "data"), *for_home]) == 0
    told = json.loads(capsys.readouterr().out)
    assert 60 <= told["measured"]["all"]["n"] < 90  # those of dev20 are kept for measuring
    with open_store(home) as store:
        choose_reader(store, home, "mine")
        assert load_reader_choice(store) == "mine"
    (tmp_path / "facts.txt").write_text(EVIDENCE, encoding="utf-8")
    given = ["check", "--claim", CLAIM, "--document", str(tmp_path / "facts.txt")]
    assert main([*given, *for_home]) == 0
    run_id = json.loads(capsys.readouterr().out)["run_id"]
    with open_store(home) as store:
        run = store.runs.get(run_id, time.time(), 60.0)
    assert run is not None
    assert run.plan.reader == "mine"


@pytest.mark.slow
def test_a_folder_is_exported_anew_where_it_was_written_since_or_is_another(
    tmp_path: Path, home: Path
) -> None:
    for place in ("one", "other"):
        written(tmp_path / place / "final", "bert", INFERENCE)
    name = import_if_new(home, str(tmp_path / "one" / "final"))
    card = list_reader_folders(home)[name] / "card.json"
    first = card.stat().st_mtime_ns
    assert import_if_new(home, str(tmp_path / "one" / "final")) == name
    assert card.stat().st_mtime_ns == first
    assert import_if_new(home, str(tmp_path / "other" / "final")) == name
    second = card.stat().st_mtime_ns
    assert second > first
    later = card.stat().st_mtime + 5
    os.utime(tmp_path / "other" / "final" / "config.json", (later, later))
    import_if_new(home, str(tmp_path / "other" / "final"))
    assert card.stat().st_mtime_ns > second


def test_too_few_rows_are_no_calibration(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "mine", "bert", INFERENCE)
    assert main(["reader", "import", str(tmp_path / "mine"), "--home", str(home)]) == 0
    capsys.readouterr()
    assert main(["reader", "calibrate", "mine", "--decided-here", "--home", str(home)]) == 2
    assert "Expected at least 60 labelled rows" in capsys.readouterr().err


def _write_set(folder: Path) -> None:
    """Ninety rows as the public set has them."""
    rows = [
        {
            "id": str(number),
            "claim": f"the bridge no {number} is {412 + number % 2 * 100} m long",
            "evidence": f"the bridge no {number} is 512 m long",
            "gold_label": "SUPPORTS" if number % 2 else "REFUTES",
        }
        for number in range(90)
    ]
    (folder / "fever_symmetric").mkdir(parents=True)
    path = folder / "fever_symmetric" / "fever_symmetric_dev.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


READ = EntailmentReading(0.8, 0.1, 0.1)


class Noting(BaseReader):
    """Remembers what it was asked."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.id, self.asked = name, list[EvidenceClaimPair]()

    def read_one(self, pair: EvidenceClaimPair) -> EntailmentReading:
        self.asked.append(pair)
        return READ

    def knows(self, text: str) -> bool:
        return True


def test_each_pair_goes_to_the_reader_of_its_language() -> None:
    english, other = Noting("english"), Noting("other")
    reader = LanguageRoutingReader(english, other)
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


@pytest.mark.parametrize(*table("readers: languages other than English"))
def test_other_languages_than_english_are_read(evidence: str, right: str, wrong: str) -> None:
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
    assert item.claim_start == 1 + MIN_EVIDENCE_TOKENS + 2
    short = encode_pair("Quelle.", "Behauptung.", tokenizer)
    assert np.all(np.diff([start for start, _ in short.offsets]) >= 0)
