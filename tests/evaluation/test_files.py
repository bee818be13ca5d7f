"""Files of public sets: every format is read, everything broken is named with its place."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.evaluation import dataset_files as files
from core.evaluation.dataset_files import (
    find_data_files,
    is_of_split,
    list_zip_members,
    read_records,
    read_text,
    read_zip_member,
)
from core.runtime.errors import InputError
from tests.evaluation.sets.files import write

ROWS = [{"a": "one", "b": 1}, {"a": "two", "b": 2}]


TORN = gzip.compress(b'{"a": 1}\n' * 999, mtime=0)[:40]


@pytest.mark.parametrize("tail", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("x.jsonl", '{"a": "one"}\n\n  {"a": "two"} \n', (1, 3)),
        ("x.json", '[\n {"a": "one"},\n\n {"a": "two"}\n]\n', (2, 4)),
        ("one.json", '[{"a": "one"}, {"a": "two"}]', (1, 1)),
        ("lines.json", '{"a": "one"}\n{"a": "two"}', (1, 2)),
        ("x.tsv", "a\tb\none\t1\n\ntwo\t2\n", (2, 4)),
        ("x.csv", "a,b\r\none,1\r\ntwo,2\r\n", (2, 3)),
    ],
)
def test_each_format_gives_its_rows_with_their_lines(
    tmp_path: Path, name: str, text: str, lines: tuple[int, int], tail: str
) -> None:
    path = write(tmp_path / (name + tail), text)
    found = [(record.text("a"), record.line) for record in read_records(path)]
    assert found == [("one", lines[0]), ("two", lines[1])]


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", "\ufeffa\tb\none\t1\n")
    assert [record.text("a") for record in read_records(path)] == ["one"]


def test_quotes_are_letters_in_a_tsv_and_quotes_in_a_csv(tmp_path: Path) -> None:
    tsv = write(tmp_path / "x.tsv", 'a\tb\n"one\tsays "two"\n')
    assert [record.text("a") for record in read_records(tsv)] == ['"one']
    csv = write(tmp_path / "x.csv", 'a,b\n"one,\ntwo",3\nfour,5\n')
    assert [(r.text("a"), r.line) for r in read_records(csv)] == [("one,\ntwo", 2), ("four", 4)]


def test_a_table_may_have_another_delimiter_than_its_name_says(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", 'a\tb\n"one, two"\t3\n')
    assert [record.text("a") for record in read_records(path, delimiter="\t")] == ["one, two"]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("x.jsonl", b'{"a": 1}\n{"a"', r"line 2: expected JSON, found"),
        ("x.jsonl", b'{"a": 1} {"a": 2}', r"line 1: expected one JSON object"),
        ("x.jsonl", b"[1]", r"line 1: expected a JSON object"),
        ("x.jsonl", b"[" * 100_000, r"line 1: expected JSON"),
        ("x.json", b'[{"a": 1},\n7]', r"line 2: expected a JSON object"),
        ("x.json", b'[{"a": 1},\n{"a": 2}', r"line 2: expected “,”"),
        ("x.json", b'[{"a": 1},\n', r"line 2: expected JSON"),
        ("x.json", b'[{"a": 1},\n{"a" 2}]', r"line 2: expected JSON"),
        ("x.json", b'[{"a": 1}] {}', r"line 1: expected nothing after the JSON list"),
        ("x.csv", b"a,b\n1,2\n3", r"line 3: expected 2 columns, found 1"),
        ("x.tsv", b"a\tb\n1\t2\t3", r"line 2: expected 2 columns, found 3"),
        ("x.csv", b"\xff", r"Expected UTF-8 text in "),
        ("x.jsonl.gz", b"plain", r"Expected a data file at .*x\.jsonl\.gz, found"),
        ("x.jsonl.gz", TORN, r"Expected a data file at"),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as raised:
        list(read_records(path))
    assert str(path) in str(raised.value)


def test_a_field_of_any_length_is_read_or_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.csv", "a,b\n" + "x" * 200_000 + ",2\n")
    assert len(next(read_records(path)).text("a")) == 200_000
    monkeypatch.setattr(files, "MAX_FIELD_CHARS", 1000)
    with pytest.raises(InputError, match=r"x\.csv, line 2: expected a table, found: field larger"):
        list(read_records(path))


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1000)
    with pytest.raises(InputError, match=r"Expected a data file at .*found: more than"):
        read_text(write(tmp_path / name, "x" * 1001))
    assert len(read_text(write(tmp_path / name, "x" * 1000))) == 1000


def test_a_zip_is_read_without_unpacking_it(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/b.jsonl", json.dumps(ROWS[0]))
        archive.writestr("a.txt", "one")
    assert list_zip_members(path) == ("a.txt", "data/b.jsonl")
    assert read_zip_member(path, "a.txt") == "one"
    with pytest.raises(InputError, match=r"Expected a data file at .*x\.zip/c\.txt, found"):
        read_zip_member(path, "c.txt")
    assert [one.name for one in tmp_path.iterdir()] == ["x.zip"]


def test_no_zip_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.zip", "plain")
    for read in (list_zip_members, lambda path: read_zip_member(path, "a.txt")):
        with pytest.raises(InputError, match=r"Expected a data file at .*x\.zip"):
            read(path)


def test_files_are_found_by_what_they_look_like(tmp_path: Path) -> None:
    for name in ("test.jsonl.gz", "b/dev.jsonl", "README.md", "dev.jsonl", "dev.jsonl.gz"):
        write(tmp_path / name, "{}")
    found = [
        path.relative_to(tmp_path).as_posix() for path in find_data_files(tmp_path, ("*.jsonl",))
    ]
    assert found == ["dev.jsonl", "test.jsonl.gz"]
    assert find_data_files(tmp_path, ("*/*.jsonl",)) == [tmp_path / "b" / "dev.jsonl"]


def test_hidden_files_are_no_data(tmp_path: Path) -> None:
    write(tmp_path / "test.jsonl", "{}")
    write(tmp_path / "._test.jsonl", "litter")
    assert [path.name for path in find_data_files(tmp_path, ["*test.jsonl"])] == ["test.jsonl"]


def test_a_folder_without_fitting_files_says_what_lies_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\*\.jsonl \(plain or \.gz\), found: nothing"):
        find_data_files(tmp_path, ("*.jsonl",))
    write(tmp_path / "notes.txt", "x")
    with pytest.raises(InputError, match=r"found: notes\.txt"):
        find_data_files(tmp_path, ("*.jsonl",))
    with pytest.raises(InputError, match="give the folder that holds"):
        find_data_files(tmp_path / "none", ("*.jsonl",))


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("fever_symmetric_test.jsonl.gz", "test"),
        ("test.jsonl.gz", "test"),
        ("healthver_test.csv.gz", "test"),
        ("SICK_TEST.tsv.gz", "test"),
        ("SICK_TRIAL.tsv.gz", "dev"),
        ("testsmall.jsonl.gz", "test"),
        ("test_labeled/mushroom.ar-tst.v1.jsonl.gz", "test"),
        ("val/mushroom.ar-val.v2.jsonl.gz", "val"),
        ("1_Baseline_protocol/val_round1_base.jsonl.gz", "dev"),
        ("train.10k.json.gz", "train"),
        ("dodeca_consistent.csv", "dodeca_consistent"),
        ("sentence/math.jsonl", "math.jsonl"),
        ("base_wiki/train.jsonl.gz", "base_wiki/train"),
    ],
)
def test_splits_go_by_many_names(name: str, split: str) -> None:
    assert is_of_split(name, split)
    assert not is_of_split(name, "latest")
    others = {"train", "dev", "test"} - {split.replace("val", "dev")}
    if split in ("train", "dev", "test", "val"):
        assert not any(is_of_split(name, other) for other in others)


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.tsv", "x.csv", "x.json.gz"])
def test_any_bytes_give_rows_or_one_error_in_words(tmp_path: Path, name: str) -> None:
    path = tmp_path / name

    @settings(max_examples=60, deadline=None)
    @given(st.one_of(st.binary(), st.text(alphabet='[]{}",:a1\\t\\n ').map(str.encode)))
    def read(data: bytes) -> None:
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        said = ""
        try:
            lines = [record.line for record in read_records(path)]
        except InputError as error:
            lines, said = [], str(error)
        assert all(1 <= line <= data.count(b"\n") + data.count(b"\r") + 1 for line in lines)
        assert not said or str(path) in said

    read()
