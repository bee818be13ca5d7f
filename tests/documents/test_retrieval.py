"""Index once, then find: by words, by meaning, in any script, without saying a thing twice."""

from __future__ import annotations

import sqlite3

import pytest

from core.documents import retrieval
from core.documents.retrieval import Retriever, TermIndex, ensure_index
from core.llm.encoder import Embedder, load_encoder
from core.runtime.concurrency import StopSignal
from core.runtime.config import ENCODER_DIR
from core.runtime.errors import Stopped
from core.schema.records import Source, SourcePage
from core.store import Store
from core.store.cases import IndexedPassage, PassageVectors
from tests.fakes import FakeEmbedder


def source(text: str, name: str = "a.txt", language: str = "en") -> Source:
    pages = (SourcePage(1, 0, len(text)),)
    return Source(id=name, name=name, kind="text", text=text, pages=pages, language=language)


def index(store: Store, encoder: Embedder, *sources: Source) -> Retriever:
    for item in sources:
        store.readings.save(item, reader="test", seconds=0.0, now=1.0)
        ensure_index(store, item, encoder, StopSignal(), lambda done, total: None)
    return Retriever(store, encoder, sources)


def test_an_index_is_built_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "ENCODING_BATCH", 1)
    item = source("One thing. Another thing.")
    store.readings.save(item, reader="test", seconds=0.0, now=1.0)
    seen: list[tuple[int, int]] = []
    encoder = FakeEmbedder()
    progress = lambda done, total: seen.append((done, total))  # noqa: E731
    assert not ensure_index(store, item, encoder, StopSignal(), progress)
    assert seen == [(0, 2), (1, 2), (2, 2)]
    assert ensure_index(store, item, encoder, StopSignal(), progress)
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_a_stopped_index_is_not_there(store: Store) -> None:
    item = source("One thing. Another thing.")
    store.readings.save(item, reader="test", seconds=0.0, now=1.0)
    stop = StopSignal()
    stop.set()
    with pytest.raises(Stopped):
        ensure_index(store, item, load_encoder(ENCODER_DIR), stop, lambda done, total: None)
    assert not store.readings.has_index(item.id, load_encoder(ENCODER_DIR).id)


def test_passages_carry_source_page_offsets_and_neighbours(store: Store) -> None:
    text = "The park is old. The tower is 412 m tall. It has a lift."
    found = index(store, FakeEmbedder(), source(text)).retrieve("tower tall", "en", 1)[0]
    assert found.text == text[found.start : found.end] == "The tower is 412 m tall."
    assert (found.source, found.page) == ("a.txt", 1)
    assert (found.before, found.after) == ("The park is old.", "It has a lift.")
    assert found.similarity is not None


def test_near_duplicates_are_said_once(store: Store) -> None:
    retriever = index(
        store,
        FakeEmbedder(),
        source("The tower is 412 m tall. Cats sleep.", "a.txt"),
        source("The tower is 412 m tall! Dogs bark.", "b.txt"),
    )
    texts = [p.text for p in retriever.retrieve("The tower is 412 m tall", "en", 5)]
    assert sum("tower" in text for text in texts) == 1


def test_other_projects_sources_change_neither_scores_nor_order(store: Store) -> None:
    text = "The tower is tall. A lift is broken. A lift is old. The bridge is long. It rains."
    own = index(store, FakeEmbedder(), source(text))
    before = own.retrieve("tower lift", "en", 5)
    for number in range(9):
        index(store, FakeEmbedder(), source(f"The tower {number} leans. " * 9, f"{number}.txt"))
    assert (
        Retriever(store, FakeEmbedder(), [source(text)]).retrieve("tower lift", "en", 5) == before
    )


def test_term_scores_are_those_of_sqlite() -> None:
    """A database that holds nothing but these sources ranks them alike."""
    rows = ["tower tall", "tower lift lift", "lift broken", "bridge long old stone", "rain"]
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE terms USING fts5 (text)")
    db.executemany("INSERT INTO terms VALUES (?)", [(row,) for row in rows])
    query = "SELECT rowid - 1, -bm25(terms) FROM terms WHERE terms MATCH ? ORDER BY rank LIMIT 3"
    expected = db.execute(query, ["tower OR lift OR stone"]).fetchall()
    found = TermIndex({"a": [row.split() for row in rows]}).score(["tower", "lift", "stone"], 3)
    assert [(number, pytest.approx(score)) for (_, number), score in found.items()] == expected


class AnotherEmbedder(FakeEmbedder):
    """As a provider's model: each of its vectors was paid for."""

    id = "another-1"


def test_an_index_for_one_embedder_leaves_anothers_vectors(store: Store) -> None:
    item = source("The tower is tall. The bridge is long.")
    index(store, FakeEmbedder(), item)
    ensure_index(store, item, AnotherEmbedder(), StopSignal(), lambda done, total: None)
    for embedder in (FakeEmbedder(), AnotherEmbedder()):
        assert store.readings.has_index(item.id, embedder.id)
        found = Retriever(store, embedder, [item]).retrieve("bridge", "en", 1)
        assert [p.text for p in found] == ["The bridge is long."]


def test_passages_that_are_cut_anew_drop_every_embedders_vectors(store: Store) -> None:
    item = source("The tower is tall. The bridge is long.")
    index(store, FakeEmbedder(), item)
    place = IndexedPassage(item.id, 0, 1, 0, len(item.text), item.text)
    vectors = PassageVectors(1, 1, b"\0\0\x80?", b"\0")
    store.readings.save_index(item.id, "another-1", [(place, "tower bridge")], vectors)
    assert not store.readings.has_index(item.id, FakeEmbedder.id)
    assert store.readings.passages(item.id) == [place]


def test_reading_anew_drops_the_old_index(store: Store) -> None:
    encoder = FakeEmbedder()
    index(store, encoder, source("The tower is tall."))
    retriever = index(store, encoder, source("The bridge is long."))
    assert [p.text for p in retriever.retrieve("tower", "en", 5)] == ["The bridge is long."]


@pytest.mark.parametrize(
    ("text", "query", "language", "expected"),
    [
        ("上海是港口。北京是中国的首都。广州很热。", "中国的首都", "zh", "北京是中国的首都。"),
        ("กรุงเทพเป็นเมืองหลวง\n\nเชียงใหม่อยู่ทางเหนือ", "เมืองหลวง", "th", "กรุงเทพเป็นเมืองหลวง"),
        ("الإسكندرية ميناء. القاهرة هي العاصمة.", "العاصمة", "ar", "القاهرة هي العاصمة."),
        (
            "A kitten slept on the sofa. Share prices fell sharply.",
            "The young cat was sleeping on a couch",
            "en",
            "A kitten slept on the sofa.",
        ),
    ],
)
def test_the_right_passage_comes_first(
    store: Store, text: str, query: str, language: str, expected: str
) -> None:
    retriever = index(store, load_encoder(ENCODER_DIR), source(text, language=language))
    assert retriever.retrieve(query, language, 5)[0].text == expected


def test_no_source_gives_no_passage(store: Store) -> None:
    assert Retriever(store, FakeEmbedder(), []).retrieve("anything", "en", 5) == []
