"""Any text and spans survive store → each format → a fresh store, and a second import."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.exchange.exporter import load_project_rows
from core.exchange.importer import ImportOutcome, ImportRequest, import_rows, preview_import
from core.exchange.registry import FORMATS, WRITABLE_FORMATS
from core.exchange.rows import (
    ExchangeDocument,
    ExchangeRow,
    MachineVerdict,
    ParsedFile,
    build_correction,
    build_gold,
    mark_row_imported,
)
from core.review.adjudication import record_correction, reopen_case
from core.schema.records import Label, Member, Project, Span, WordScore
from core.schema.reviews import Correction, GoldAnswer, Suggestion
from core.store import open_store
from core.store.ground_truth import GroundTruth
from tests.exchange.stores import NOW, NOWHERE, exported, imported, kept, moved, project_of

HARD = (
    "👩‍👩‍👧‍👦 family", "e\u0301tude", "\u0915\u094d\u0937 हिन्दी", "שלום \u202eעולם", "a\r\nb\rc\n",
    "  leading", "=1+1", "'=1+1", "@x", "\tTAB", "\x01\x1f\x7f\x85", "\u2028\u2029", '"quoted", ;|',
    "\U0001d4b3 astral", "\ufeffbom", "<b>&amp;</b>", "[{", "\\n \\u0041", "sep=;\r\n",
)  # fmt: skip
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
TEXT = st.one_of(st.text(CHARACTERS, max_size=40), st.sampled_from(HARD))
RESPONSE = st.lists(TEXT, min_size=1, max_size=4).map("".join).filter(lambda text: text.strip())
IDS = st.one_of(
    st.text(CHARACTERS, min_size=1, max_size=20).filter(lambda i: i.isprintable() and i.strip()),
    st.integers(-5, 10**12).map(str),
    st.sampled_from(["=1", "-7", "'x", "a,b;c\td".replace("\t", "")]),
)


@st.composite
def spans(draw: Any, response: str) -> tuple[Span, ...]:
    """Spans of the response, overlapping ones too."""
    size = len(response)
    found = []
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, size - 1))
        end = draw(st.integers(start + 1, size))
        category = draw(st.sampled_from(["contradicted", "unspecified", "eigene Art", "=x"]))
        found.append(Span(start, end, response[start:end], 1.0, category, ""))
    return tuple(found)


@st.composite
def rows(draw: Any) -> tuple[ExchangeRow, ...]:
    """Some cases under different ids."""
    found = []
    for name in draw(st.lists(IDS, min_size=1, max_size=3, unique=True)):
        response = draw(RESPONSE)
        label = draw(st.sampled_from([None, "supported", "hallucinated", "unclear"]))
        marked = draw(spans(response))
        soft = tuple(WordScore(s.start, s.end, 0.25) for s in marked[:1])
        texts = {"reason": draw(TEXT).strip(), "corrected_answer": draw(TEXT).strip()}
        gold = None if label is None else build_gold(label, marked, soft=soft, **texts)
        found.append(ExchangeRow(name, response, draw(TEXT), "en", golds=(gold,) if gold else ()))
    return tuple(found)


@pytest.mark.parametrize("name", WRITABLE_FORMATS)
@given(given_rows=rows())
@example(given_rows=tuple(ExchangeRow(f"h{n}", text + ".") for n, text in enumerate(HARD)))
@example(given_rows=(ExchangeRow("a", "same"), ExchangeRow("b", "same")))
def test_texts_labels_and_spans_survive(name: str, given_rows: tuple[ExchangeRow, ...]) -> None:
    before, after = moved(given_rows, name)
    assert [kept(row) for row in after] == [kept(row) for row in before]
    assert [kept(row)["id"] for row in before] == [row.id for row in given_rows]


@pytest.mark.parametrize("name", WRITABLE_FORMATS)
def test_a_very_long_text_survives(name: str) -> None:
    text = "Ünïcode 👩‍👩‍👧 text\r\n" * 2500
    span = Span(49_000, 49_007, text[49_000:49_007], 1.0, "contradicted", "")
    row = ExchangeRow("long", text, golds=(build_gold("hallucinated", [span]),))
    before, after = moved((row,), name)
    assert len(text) >= 50_000
    assert kept(after[0]) == kept(before[0])


@pytest.mark.parametrize("name", WRITABLE_FORMATS)
def test_the_same_file_twice_changes_nothing(name: str) -> None:
    span = Span(0, 3, "The", 1.0, "contradicted", "")
    row = ExchangeRow(
        "1",
        "The tower.",
        golds=(build_gold("hallucinated", [span], reason="why"),),
        corrections=(
            build_correction("ana", "hallucinated", [span]),
            build_correction("bo", "unclear"),
        ),
        suggestions=(Suggestion("", "", "detector", 0.0, "hallucinated", 0.7, (span,)),),
    )
    with open_store(None) as store, open_store(None) as other:
        imported(store, ParsedFile((row,)))
        data = exported(store, name)
        for target in (store, other):
            imported(target, FORMATS[name].read("rows", data), now=1.0)
            state = [list(target.db.query(f"SELECT * FROM {t}")) for t in TABLES]
            again = imported(target, FORMATS[name].read("rows", data), now=2.0)
            assert (again.new, again.known) == (0, 1)
            assert state == [list(target.db.query(f"SELECT * FROM {t}")) for t in TABLES]
        assert exported(store, name) == data


TABLES = ("cases", "golds", "corrections", "suggestions", "items", "handlings", "library")


@pytest.mark.parametrize("name", ["jsonl", "csv", "label-studio", "argilla"])
def test_what_several_people_said_survives(name: str) -> None:
    row = ExchangeRow(
        "1",
        "The tower is old.",
        golds=(build_gold("supported"),),
        corrections=(
            build_correction("ana", "hallucinated", [Span(4, 9, "tower", 1.0, "reasoning", "")]),
            build_correction("bo", "unclear", reason="who knows"),
        ),
    )
    before, after = moved((row,), name)
    people = [
        [(one.author, one.label, one.spans, one.reason) for one in side[0].people]
        for side in (before, after)
    ]
    assert people[0] == people[1]
    assert [author for author, *_ in people[0]] == ["ana (imported)", "bo (imported)"]
    assert kept(after[0])["label"] == "supported", (
        "the gold that came along is nobody’s to overrule"
    )


def test_jsonl_keeps_everything() -> None:
    span = Span(4, 9, "tower", 0.4, "reasoning", "ana", "castle")
    row = ExchangeRow(
        "1",
        "The tower is old.",
        "What is old?",
        "en",
        "Role",
        "Instruction",
        golds=(
            replace(build_gold("supported"), id="g1", at=5.0, author="x"),
            replace(
                build_gold("unclear", [span], reason="r"),
                id="g2",
                at=7.0,
                author="z",
                origin="adjudicated",
            ),
        ),
        corrections=(
            replace(build_correction("ana", "unclear", [span]), id="c1", at=3.0, seconds=8.5),
            replace(build_correction("ana", "unclear"), id="c2", at=4.0, withdraws="c1"),
        ),
        suggestions=(Suggestion("s1", "", "d", 2.0, "hallucinated", 0.7, (span,)),),
        others=(("model", "gpt"), ("logits#json", "[1.5, null]")),
    )
    (before,), (after,) = moved((mark_row_imported(row),), "jsonl")
    assert replace(after, handlings=()) == replace(before, handlings=())
    assert [one.did for one in after.handlings] == ["imported", "imported"]


@pytest.mark.parametrize("name", WRITABLE_FORMATS)
def test_an_own_file_that_comes_back_changes_nothing(name: str) -> None:
    span = Span(4, 9, "tower", 1.0, "reasoning", "lee")
    row = ExchangeRow("1", "The tower.", golds=(build_gold("supported"),))
    with open_store(None) as store:
        imported(store, ParsedFile((row,)))
        given = [
            Correction("c1", None, "1", "lee", 2e9, "unclear", (), "hm"),
            Correction("c2", None, "1", "ana", 3e9, "hallucinated", (span,), "p. 3"),
        ]
        with store.writing():
            for one in given:
                store.corrections.add(one, row.response)
        before = [list(store.db.query(f"SELECT * FROM {table}")) for table in TABLES]
        data = exported(store, name)
        assert imported(store, FORMATS[name].read("rows", data)).known == 1
        assert before == [list(store.db.query(f"SELECT * FROM {table}")) for table in TABLES]
    with open_store(None) as other:
        imported(other, FORMATS[name].read("rows", data))
        (found,) = load_project_rows(other, NOWHERE, project_of(other))
        assert kept(found)["label"] == "supported", "nobody's answer is written over the gold"
        assert kept(found)["spans"] == []


def test_the_verdict_of_another_home_is_a_suggestion() -> None:
    verdict = MachineVerdict("f" * 32, "hallucinated", 0.9, 0.9, "why", None, 5.0)
    row = ExchangeRow("1", "The tower.", verdict=verdict)
    with open_store(None) as store:
        for _ in range(2):
            assert not imported(store, ParsedFile((row,))).problems
        (found,) = store.golds.suggestions("1")
        item = store.queue.get("1")
    assert (found.label, found.p, found.at) == ("hallucinated", 0.9, 5.0)
    assert item is not None
    assert (item.run_id, item.label, item.p) == (None, "hallucinated", 0.9)


@pytest.mark.parametrize("name", ["label-studio", "argilla"])
def test_nobody_of_several_becomes_the_gold(name: str) -> None:
    people = (build_correction("ana", "unclear"), build_correction("bo", "hallucinated"))
    _, (after,) = moved((ExchangeRow("1", "The tower.", corrections=people),), name)
    assert after.golds == ()
    assert [(one.author, one.label) for one in after.people] == [
        ("ana (imported)", "unclear"),
        ("bo (imported)", "hallucinated"),
    ]


def annotated_rows() -> tuple[ExchangeRow, ...]:
    """Golds of a file, and one, two or three people's answers with and without agreement."""
    tower = Span(4, 9, "tower", 1.0, "reasoning", "")
    old = Span(13, 16, "old", 1.0, "contradicted", "", "new")
    wrong: Label = "hallucinated"
    fine: Label = "supported"
    said: dict[str, tuple[tuple[str, Label, tuple[Span, ...]], ...]] = {
        "nobody": (),
        "one": (("ana", wrong, (tower,)),),
        "two agree": (("ana", wrong, (tower, old)), ("bo", wrong, (old,))),
        "two differ": (("ana", wrong, (tower,)), ("bo", fine, ())),
        "most agree": (("ana", fine, ()), ("bo", wrong, (old,)), ("cy", fine, ())),
        "alike": (("ana", wrong, (old,)), ("bo", wrong, (old,)), ("cy", wrong, (old,))),
    }
    found = []
    for name, people in said.items():
        answers = tuple(build_correction(who, label, spans) for who, label, spans in people)
        row = ExchangeRow(name, "The tower is old.", "What?", "en", corrections=answers)
        gold = build_gold("unclear", (tower,), author="a set")
        found += [row, replace(row, id=f"{name}, gold", golds=(gold,))]
    return tuple(found)


@pytest.mark.parametrize("people_each", [1, 2, 3])
@pytest.mark.parametrize("name", WRITABLE_FORMATS)
def test_golds_and_answers_are_as_many_after_export_and_import(
    name: str, people_each: int, tmp_path: Path
) -> None:
    """A format with a place for everybody keeps both; another's golds are what was decided."""
    with open_store(tmp_path / "a") as first, open_store(tmp_path / "b") as second:
        for store in (first, second):
            with store.writing():
                store.projects.save(replace(project_of(store), people_each=people_each))
        document = ExchangeDocument("tower.txt", "The tower is new.")
        rows = tuple(replace(row, documents=(document,)) for row in annotated_rows())
        imported(first, ParsedFile(rows), home=tmp_path / "a")
        data = exported(first, name, tmp_path / "a")
        read = FORMATS[name].read("rows", data)
        assert not imported(second, read, home=tmp_path / "b").problems
        before, after = (
            {row.id: row for row in load_project_rows(s, tmp_path / n, project_of(s))}
            for s, n in ((first, "a"), (second, "b"))
        )
        state = [list(first.db.query(f"SELECT * FROM {t}")) for t in ("golds", "corrections")]
        assert imported(first, read, home=tmp_path / "a").known == len(rows)
        assert state == [
            list(first.db.query(f"SELECT * FROM {t}")) for t in ("golds", "corrections")
        ], "in its own home it changes nothing"
    assert list(after) == list(before)
    is_whole = name in ("jsonl", "csv", "label-studio", "argilla")
    for row, copy in zip(before.values(), after.values(), strict=True):
        assert _list_marks(copy.truth) == _list_marks(row.truth), row.id
        if is_whole:
            assert [(c.author, *_list_marks(c)) for c in copy.people] == [
                (c.author, *_list_marks(c)) for c in row.people
            ]
            assert len(copy.golds) == len(row.golds)
        else:
            assert len(copy.golds) == row.truth.is_decided
            assert copy.people == ()
        if name != "mu-shroom":
            assert [d.text for d in copy.documents] == ["The tower is new."]


@pytest.mark.parametrize("name", WRITABLE_FORMATS)
def test_what_was_settled_comes_back_as_settled_with_the_golds_before_it(name: str) -> None:
    """Also where it was settled back, and against what everybody marked."""
    tower = Span(4, 9, "tower", 1.0, "reasoning", "")
    old = Span(13, 16, "old", 1.0, "contradicted", "", "new")
    given = (
        GoldAnswer("g1", "1", "lee", 5.0, "imported", "supported"),
        GoldAnswer("g2", "1", "lee", 6.0, "adjudicated", "supported"),
        GoldAnswer("g3", "1", "lee", 7.0, "adjudicated", "unclear", reason="hm"),
        GoldAnswer("g4", "2", "lee", 5.0, "imported", "hallucinated", (tower,)),
        GoldAnswer("g5", "2", "lee", 6.0, "adjudicated", "hallucinated", (old,)),
        GoldAnswer("g6", "2", "lee", 7.0, "corrected", "hallucinated", (tower,), reason="p. 3"),
        GoldAnswer("g7", "3", "lee", 7.0, "adjudicated", "hallucinated", (tower,)),
        GoldAnswer("g8", "1", "lee", 8.0, "adjudicated", "supported"),
    )
    response = "The tower is old."
    with open_store(None) as store, open_store(None) as other:
        people = (build_correction("ana", "hallucinated", [old]),)
        rows = tuple(ExchangeRow(n, response, corrections=people) for n in ("1", "2", "3"))
        imported(store, ParsedFile(rows))
        with store.writing():
            for gold in given:
                store.golds.add(gold, response)
        read = FORMATS[name].read("rows", exported(store, name))
        for again in (imported(store, read), imported(other, read), imported(other, read, now=2.0)):
            assert not again.problems
            assert again.golds == 0 or again.new, "its own file brings nothing new"
        before, after = (
            {row.id: row for row in load_project_rows(one, NOWHERE, project_of(one))}
            for one in (store, other)
        )
    for case_id, row in before.items():
        copy = after[case_id]
        assert _list_marks(copy.truth) == _list_marks(row.truth)
        assert copy.soft == row.soft == (), "marks that were overruled are no shares of it"
        if name in ("mu-shroom", "ragtruth"):
            assert (len(copy.golds), copy.truth.basis) == (1, "gold")
        else:
            assert [_list_gold(one) for one in copy.golds] == [_list_gold(g) for g in row.golds]
            assert copy.truth.basis == "settled"


def _list_gold(gold: GoldAnswer) -> tuple[object, ...]:
    return gold.id, gold.at, gold.origin, gold.reason, _list_marks(gold)


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("name", WRITABLE_FORMATS)
def test_what_was_settled_and_given_back_is_no_gold_elsewhere(name: str, is_known: bool) -> None:
    """Only the project's own file keeps it, with the log by which it does not count."""
    fine, wrong = build_correction("ana", "supported"), build_correction("bo", "hallucinated")
    rows = tuple(
        ExchangeRow(case_id, "The tower is old.", corrections=said)
        for case_id, said in (("agreed", (fine,)), ("disputed", (fine, wrong)), ("gold", ()),
                              ("anew", (wrong,)))
    )  # fmt: skip
    given = (
        GoldAnswer("g1", "agreed", "lee", 5.0, "adjudicated", "unclear"),
        GoldAnswer("g2", "disputed", "lee", 5.0, "adjudicated", "supported"),
        GoldAnswer("g3", "gold", "lee", 4.0, "imported", "supported"),
        GoldAnswer("g4", "gold", "lee", 5.0, "adjudicated", "supported"),
        GoldAnswer("g5", "anew", "lee", 5.0, "adjudicated", "unclear"),
        GoldAnswer("g6", "anew", "lee", 7.0, "adjudicated", "unclear"),
    )
    with open_store(None) as store, open_store(None) as other:
        imported(store, ParsedFile(rows))
        if is_known:
            imported(other, ParsedFile(rows))
        with store.writing():
            for gold in given:
                store.golds.add(gold, rows[0].response)
            for row in rows:
                reopen_case(store, row.id, "lee", 6.0)
        read = FORMATS[name].read("rows", exported(store, name))
        assert not imported(other, read, now=2e9).problems
        assert imported(store, read, now=2e9).golds == 0, "its own file brings nothing new"
        before, after = (
            {row.id: row for row in load_project_rows(one, NOWHERE, project_of(one))}
            for one in (store, other)
        )
    counting = {"agreed": [], "disputed": [], "gold": ["g3"], "anew": ["g6"]}
    for case_id, row in before.items():
        copy = after[case_id]
        assert _list_marks(copy.truth) == _list_marks(row.truth)
        golds = [gold for gold in given if gold.id in counting[case_id]]
        if name == "jsonl" and not is_known:
            golds = [gold for gold in given if gold.case_id == case_id]
        if name in ("mu-shroom", "ragtruth"):
            assert len(copy.golds) == (row.truth.is_decided and (not is_known or bool(golds)))
        else:
            assert [_list_gold(one) for one in copy.golds] == [_list_gold(g) for g in golds]
            assert copy.truth.basis == row.truth.basis


@pytest.mark.parametrize("name", ["csv", "label-studio", "argilla"])
def test_an_edit_of_the_answer_wins_over_the_golds_that_the_file_carries(name: str) -> None:
    gold = GoldAnswer("g1", "1", "lee", 5.0, "adjudicated", "supported", reason="because")
    with open_store(None) as store, open_store(None) as other:
        imported(store, ParsedFile((ExchangeRow("1", "The tower."),)))
        store.golds.add(gold, "The tower.")
        data = exported(store, name)
        before, _, rest = (data.partition if name == "csv" else data.rpartition)(b"because")
        data = before + b"as I say" + rest
        imported(other, FORMATS[name].read("rows", data))
        (found,) = other.golds.of_case("1")
    assert (found.origin, found.reason) == ("imported", "as I say")


def _list_marks(
    said: Correction | GoldAnswer | GroundTruth,
) -> tuple[str | None, list[tuple[int, int, str]]]:
    return said.label, [(s.start, s.end, s.category) for s in said.spans]


def test_the_same_ids_in_two_projects_are_two_cases() -> None:
    """With their answers; the same file again changes nothing in either."""
    lines = [{"id": str(n), "response": f"Claim {n}.", "label": "supported"} for n in (1, 2)]
    read = FORMATS["jsonl"].read("rows", "\n".join(map(json.dumps, lines)).encode())
    with open_store(None) as store:
        first, towers = project_of(store), Project("t" * 32, "Towers", 2.0)
        with store.writing():
            store.projects.save(towers)
            store.projects.set_member(Member(towers.id, "lee", "lead", 2.0))
        for project, new in ((first, 2), (towers, 2), (first, 0), (towers, 0)):
            order = ImportRequest(project, "lee", NOW, "rows")
            assert preview_import(store, read, project) == (new, 2 - new, [])
            outcome = import_rows(store, NOWHERE, read, order)
            assert (outcome.new, outcome.golds, outcome.problems) == (new, new, [])
        write = FORMATS["jsonl"].write
        assert write is not None
        own = FORMATS["jsonl"].read("rows", write(load_project_rows(store, NOWHERE, towers)))
        assert preview_import(store, own, towers) == (0, 2, []), "it knows what it exported"
        fully = import_rows(store, NOWHERE, own, ImportRequest(first, "lee", NOW, "rows"))
        assert not fully.problems, "records of another project's case get ids of their own"


@pytest.mark.parametrize("name", ["jsonl", "csv", "label-studio", "argilla"])
def test_what_was_said_settled_and_said_again_is_the_same_in_another_projects_copy(
    name: str,
) -> None:
    labels: tuple[Label, ...] = ("supported", "hallucinated", "supported")
    with open_store(None) as store:
        imported(store, ParsedFile((ExchangeRow("a", "The tower."),)))
        first, towers = project_of(store), Project("t" * 32, "Towers", 2.0)
        with store.writing():
            store.projects.save(towers)
            store.projects.set_member(Member(towers.id, "lee", "lead", 2.0))
            for at, label in enumerate(labels, start=3):
                gold = GoldAnswer(f"g{at}", "a", "lee", at, "adjudicated", label)
                store.golds.add(gold, "The tower.")
                said = Correction(f"k{at}", None, "a", "Ana", at, label)
                store.corrections.add(said, "The tower.")
        write = FORMATS[name].write
        assert write is not None
        read = FORMATS[name].read("rows", write(load_project_rows(store, NOWHERE, first)))
        order = ImportRequest(towers, "lee", NOW, "rows")
        assert [import_rows(store, NOWHERE, read, order).golds for _ in range(2)] == [3, 0]
        (copy,) = store.cases.all(towers.id)
        assert tuple(gold.label for gold in store.golds.of_case(copy.id)) == labels
        said_there = [said.label for said in store.corrections.of_case(copy.id)]
        assert said_there == list(labels if name == "jsonl" else labels[-1:]), "others: the newest"


@pytest.mark.parametrize("name", WRITABLE_FORMATS)
def test_a_case_of_two_projects_leaves_both_with_its_own_id(name: str) -> None:
    """What either exports is known to both, and to the second also without the first."""
    span = Span(0, 3, "The", 1.0, "contradicted", "")
    suggestion = Suggestion("", "", "detector", 0.0, "hallucinated", 0.7, (span,))
    rows = (
        ExchangeRow("a", "The tower.", golds=(build_gold("hallucinated", [span]),)),
        ExchangeRow("b@c", "The bridge.", suggestions=(suggestion,)),
    )
    read, write = FORMATS[name].read, FORMATS[name].write
    assert write is not None
    with open_store(None) as store:
        imported(store, ParsedFile(rows))
        first, towers = project_of(store), Project("t" * 32, "Towers", 2.0)
        with store.writing():
            store.projects.save(towers)
            store.projects.set_member(Member(towers.id, "lee", "lead", 2.0))
            case = store.cases.get("b@c")
            assert case is not None
            for said in (
                Correction("kAna", None, case.id, "Ana", 3.0, "hallucinated", (span,)),
                Correction("kBo", None, case.id, "Bo", 4.0, "supported"),
            ):
                record_correction(store, said, case)

        def bring(project: Project, data: bytes) -> ImportOutcome:
            return import_rows(
                store, NOWHERE, read("rows", data), ImportRequest(project, "lee", NOW, "rows")
            )

        data = write(load_project_rows(store, NOWHERE, first))
        assert bring(towers, data).new == 2
        copies = load_project_rows(store, NOWHERE, towers)
        assert [row.id for row in copies] == ["a", "b@c"]
        before = [list(store.db.query(f"SELECT * FROM {table}")) for table in TABLES]
        for project in (first, towers):
            outcome = bring(project, write(copies))
            assert (outcome.new, outcome.known, outcome.problems) == (0, 2, [])
        assert before == [list(store.db.query(f"SELECT * FROM {table}")) for table in TABLES]
        with store.writing():
            copy = store.cases.get(f"b@c@{towers.id[:8]}")
            assert copy is not None
            record_correction(
                store, Correction("kCy", None, copy.id, "Cy", 5.0, "unclear", (), "why"), copy
            )
        copies = load_project_rows(store, NOWHERE, towers)
        assert not bring(first, write(copies)).problems, "an answer that only the copy has"
        store.db.execute("DELETE FROM items WHERE project_id = ?", [first.id])
        for case_id in ("a", "b@c"):
            for table in ("handlings", "golds", "corrections", "suggestions"):
                store.db.execute(f"DELETE FROM {table} WHERE case_id = ?", [case_id])
            store.db.execute("DELETE FROM cases WHERE id = ?", [case_id])
        assert bring(towers, write(copies)).known == 2
