"""Files with columns of other names come in as a person maps them; nothing is guessed silently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.exchange.column_mapping import (
    ColumnMapping,
    attribute_labels,
    guess_columns,
    guess_label,
    list_label_values,
    map_rows,
    read_file_table,
)
from core.exchange.exporter import load_project_rows
from core.exchange.registry import FORMATS
from core.runtime.errors import InputError
from core.schema.records import Label
from core.schema.reviews import GoldAnswer
from core.store import open_store
from tests.exchange.stores import NOW, NOWHERE, exported, imported, project_of

TABLE = (
    b"hypothesis;premise;is_hal;rater;topic\n"
    b"The cat sat.;A cat sat there.;0;ana;cats\n"
    b"The cat sat.;A cat sat there.;1;bo;cats\n"
    b"The dog ran.;;1;ana;dogs\n"
    b"The dog ran.;;;bo;dogs\n"
)
COLUMNS = {"response": "hypothesis", "document": "premise", "label": "is_hal", "annotator": "rater"}


def test_a_table_is_read_by_columns_and_meanings_that_a_person_chose(tmp_path: Path) -> None:
    table = read_file_table("set.csv", TABLE)
    assert table.columns == ("hypothesis", "premise", "is_hal", "rater", "topic")
    assert list_label_values(table, "is_hal") == ["0", "1"]
    assert [guess_label(value) for value in ("0", "1", "Refuted")] == [None, None, "hallucinated"]
    read = map_rows(table, ColumnMapping(COLUMNS, {"0": "supported", "1": "hallucinated"}))
    assert [len(row.corrections) for row in read.rows] == [2, 1]
    with open_store(None) as store:
        outcome = imported(store, read, home=tmp_path)
        assert (outcome.new, outcome.corrections, outcome.golds, outcome.documents) == (2, 3, 0, 1)
        first = load_project_rows(store, tmp_path, project_of(store))[0]
        assert [(one.author, one.label) for one in first.people] == [
            ("ana (imported)", "supported"), ("bo (imported)", "hallucinated")
        ]  # fmt: skip
        assert first.others == (("topic", "cats"),)
        assert imported(store, read, home=tmp_path).corrections == 0, "the same file again"
    opposite = map_rows(table, ColumnMapping(COLUMNS, {"0": "hallucinated", "1": None}))
    assert [one.label for row in opposite.rows for one in row.corrections] == ["hallucinated"]


def test_a_name_that_cannot_be_shown_costs_its_own_answer_alone() -> None:
    names = ("ana", "\u202eana", "n" * 5000, "n" * 195, "zed")
    data = "response,label,annotator\n" + "".join(f"A cat.,0,{name}\n" for name in names)
    table = read_file_table("set.csv", data.encode())
    read = map_rows(table, ColumnMapping(guess_columns(table), {"0": "supported"}))
    with open_store(None) as store:
        outcome = imported(store, read)
    assert (outcome.new, outcome.corrections) == (1, 2)
    assert [one.place for one in outcome.problems] == [3, 4, 5]
    assert all("a name of 1 to 200 characters" in one.reason for one in outcome.problems)


def test_rows_that_contradict_each_other_are_told() -> None:
    """Both are kept; nobody should find out later that the first label no longer counts."""
    data = b"id,response,label\n1,abc,0\n2,x,0\n1,abd,0\n2,x,0\n1,abc,1\n"
    table = read_file_table("set.csv", data)
    meanings: dict[str, Label | None] = {"0": "supported", "1": "hallucinated"}
    read = map_rows(table, ColumnMapping(guess_columns(table), meanings))
    with open_store(None) as store:
        outcome = imported(store, read)
        notice = "lines 2 and 6 give “1” different labels: that of line 6 counts"
        assert outcome.notices == [notice]
        assert outcome.as_dict()["notices"] == [notice]
        assert outcome.words.endswith(notice)
        assert store.truths.of_case("1").label == "hallucinated"
        store.golds.add(GoldAnswer("g", "1", "lee", NOW, "adjudicated", "unclear"), "abc")
        (notice,) = imported(store, read).notices
        assert notice.endswith("different labels: the settled answer, unclear, counts")
        assert not imported(store, read, "cases").notices


def test_a_label_whose_meaning_nobody_chose_is_a_problem_not_a_guess() -> None:
    read = map_rows(read_file_table("set.csv", TABLE), ColumnMapping(COLUMNS, {"1": "supported"}))
    assert [one.reason for one in read.problems] == [
        "expected a meaning of the label “0”, found none; choose one."
    ]


def test_json_lines_with_lists_are_mapped_too() -> None:
    rows = [
        {"uid": 7, "answer": "Two towers.", "ctx": ["One.", {"title": "b.txt", "text": "Two."}],
         "ok": True, "marks": [[0, 3]]},
        {"uid": 8, "answer": "", "ok": False},
    ]  # fmt: skip
    table = read_file_table("set.jsonl", "\n".join(map(json.dumps, rows)).encode())
    assert table.columns == ("uid", "answer", "ctx", "ok", "marks")
    assert list_label_values(table, "ok") == ["true", "false"]
    columns = {
        "id": "uid",
        "response": "answer",
        "document": "ctx",
        "label": "ok",
        "spans": "marks",
    }
    read = map_rows(table, ColumnMapping(columns, {"true": "supported", "false": "hallucinated"}))
    (row,) = read.rows
    assert (row.id, row.golds[0].label, row.golds[0].spans[0].text) == ("7", "supported", "Two")
    assert [(d.name, d.text) for d in row.documents] == [
        ("source 1.txt", "One."),
        ("b.txt", "Two."),
    ]
    assert [one.place for one in read.problems] == [2]


def test_columns_are_proposed_by_their_names() -> None:
    found = guess_columns(read_file_table("set.csv", b"Claim,Context,Label,worker_id,x\n"))
    assert found == {
        "response": "Claim", "document": "Context", "label": "Label", "annotator": "worker_id"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (
            ("Nr", "Frage", "KI_Ausgabe", "Beleg", "Etikett"),
            [
                ("Wie hoch ist der Turm?", "Der Turm misst 412 Meter.",
                 "Seit dem Umbau misst der Turm am Hafen 412 Meter und ist weithin zu sehen."),
                ("Wer malte das Bild?", "Das Bild malte Anna Weber.",
                 "Anna Weber malte das Bild im Jahr 1902; es hängt heute im Rathaus der Stadt."),
            ],
        ),
        (
            ("编号", "问题", "模型输出", "来源", "标注"),
            [
                ("这座塔有多高？", "这座塔高412米。",
                 "改建以后，港口边的这座塔高412米，是全城最高的建筑。"),
                ("谁画了这幅画？", "这幅画由安娜绘制。",
                 "这幅画由安娜绘制，一九零二年完成，现在挂在市政厅。"),
            ],
        ),
        (
            ("رقم", "السؤال", "جواب النموذج", "المصدر", "الوسم"),
            [
                ("كم ارتفاع البرج؟", "ارتفاع البرج 412 مترا.",
                 "بعد التجديد صار ارتفاع البرج قرب الميناء 412 مترا وهو أعلى مبنى في المدينة."),
                ("من رسم اللوحة؟", "رسمت اللوحة آنا.",
                 "رسمت اللوحة آنا سنة 1902 وهي معلقة اليوم في مبنى البلدية القديم."),
            ],
        ),
    ],
)  # fmt: skip
def test_columns_of_any_name_are_proposed_by_their_values(
    names: tuple[str, ...], rows: list[tuple[str, str, str]]
) -> None:
    lines = [(number, *rows[number % 2], "ja" if number % 3 else "nein") for number in range(6)]
    data = "\n".join(json.dumps(dict(zip(names, line, strict=True))) for line in lines)
    found = guess_columns(read_file_table("set.jsonl", data.encode()))
    assert found == dict(zip(("question", "response", "document", "label"), names[1:], strict=True))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a,b,a\n1,2,3\n", "each column once, found “a” twice"),
        (b"\x89PNG\r\n\x1a\n\xff", "UTF-8"),
    ],
)
def test_what_is_no_table_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_file_table("set.csv", data)


def test_a_column_of_numbers_is_not_taken_for_labels() -> None:
    data = "text,p\n" + "".join(f"Claim {n}.,{n}\n" for n in range(30))
    with pytest.raises(InputError, match="at most 20 different labels in the column “p”, found 30"):
        list_label_values(read_file_table("set.csv", data.encode()), "p")


def test_labels_become_the_answers_of_a_person_who_is_named() -> None:
    read = FORMATS["csv"].read("set.csv", b"response,label\nTwo.,supported\nThree.,\n")
    with pytest.raises(InputError, match="the name of the person who gave these answers"):
        attribute_labels(read, "")
    with open_store(None) as store, open_store(None) as other:
        outcome = imported(store, attribute_labels(read, "Ana"))
        assert (outcome.golds, outcome.corrections) == (0, 1)
        imported(other, FORMATS["jsonl"].read("rows", exported(store, "jsonl")))
        people = [
            one.author
            for row in load_project_rows(other, NOWHERE, project_of(other))
            for one in row.people
        ]
    assert people == ["Ana (imported)"]
