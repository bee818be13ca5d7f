"""A whole project leaves one home and is the same in another; what was changed is refused."""

from __future__ import annotations

import getpass
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.__main__ import main
from core.documents.library import load_file_bytes, store_file
from core.exchange import archive
from core.exchange.archive import (
    LISTS_SINCE_VERSION,
    MANIFEST_NAME,
    import_archive,
    write_archive,
)
from core.llm.prompting import load_shipped_prompt
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project, name_guest
from core.review.queue_ranking import build_imported_item
from core.runtime.config import Settings
from core.runtime.errors import NotAllowed, ReviewError
from core.schema.events import RunFinished, RunStarted
from core.schema.records import Member, Plan, Project, Run, Span, Verdict
from core.schema.reviews import Correction, GoldAnswer, QueueEvent, Suggestion
from core.store import Store, open_store
from core.store.cases import Batch, BatchRow
from core.store.projects import Guideline, PromptEdit
from tests.documents.builders import photograph, png
from tests.exchange.stores import kept, project_of

TEXT = "The tower is old. 👩‍👩‍👧"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a project in which everything occurs."""
    home = tmp_path / "one"
    with open_store(home) as store:
        project = ensure_project(store, "lee", 1.0)
        store.projects.save(replace(project, name="Towers", people_each=3, is_blind=True))
        store.projects.set_member(Member(project.id, "ana", "annotator", 2.0))
        files = [("facts.txt", b"The tower is new."), ("tower.png", png(photograph(64, 48)))]
        ids = [
            store_file(store, home, project.id, name, data, "ana", 3.0, Settings()).id
            for name, data in files
        ]
        draft = CaseDraft(TEXT, "Old?", (ids[0],), (ids[1],), others=(("model", "x"),))
        case = store_case(store, project, draft, "ana", 4.0)
        verdict = Verdict("hallucinated", 0.9, 0.9, "It is new.")
        with store.writing():
            store.runs.add(Run("r1", case.id, project.id, Plan(), "queued", 5.0), "", 0.0)
            store.runs.append(
                "r1", None, [RunStarted(5.0, case, Plan(), ()), RunFinished(6.0, verdict, 1.0)]
            )
            span = Span(4, 9, "tower", 1.0, "reasoning", "ana")
            given = Correction("c1", "r1", case.id, "ana", 7.0, "unclear", (span,), "why")
            store.corrections.add(given, TEXT)
            back = Correction("c2", "r1", case.id, "ana", 8.0, "unclear", withdraws="c1")
            store.corrections.add(back, TEXT)
            store.golds.add(GoldAnswer("g1", case.id, "lee", 9.0, "imported", "supported"), TEXT)
            store.golds.suggest(Suggestion("s1", case.id, "bot", 9.0, "unclear", 0.5), case)
            store.queue_events.add(QueueEvent(case.id, "ana", 9.0, "flagged", "hm"))
            store.queue.add(
                replace(build_imported_item(case, 9.0, None, 0.4), state="flagged", given=1)
            )
            store.queue.end(case.id, "ana", "submitted", 9.5)
            text = load_shipped_prompt("judge", "en").text.replace("You ", "Now you ", 1)
            for number, words in enumerate((text, "", text + "\n")):
                at = 10.0 + number
                edit = PromptEdit(0, project.id, "judge", "en", words, at, "lee")
                store.prompt_edits.save(edit)
                store.guidelines.save(Guideline(0, project.id, f"# {number}", at, "lee"))
            batch = Batch("b1", project.id, "towers.csv", "ana", 11.0, Plan(max_turns=3))
            others = (("model", "x"),)
            checked = BatchRow("b1", 1, TEXT, (ids[0],), case.id, "r1", "", "Old?", others)
            bad = BatchRow("b1", 2, "", (), problem="no claim")
            store.batches.add(batch, [checked, bad])
            store.batches.add(replace(batch, id="b0", created_at=12.0), [])
    return home


def packed(home: Path) -> bytes:
    stream = io.BytesIO()
    with open_store(home) as store:
        write_archive(store, home, project_of(store), stream)
    return stream.getvalue()


def taken(home: Path, data: bytes) -> Project:
    with open_store(home) as store:
        return import_archive(store, home, io.BytesIO(data), "kim", 100.0).project


def everything(store: Store, home: Path, project: Project) -> dict[str, object]:
    cases = store.cases.all(project.id)
    ids = [case.id for case in cases]
    return {
        "project": replace(project, name=""),
        "cases": cases,
        "files": [(e.id, e.name, e.kind, e.added_by, load_file_bytes(home, e.id))
                  for e in store.library.all(project.id)],
        "runs": [replace(run, origin="here") for i in ids for run in store.runs.of_case(i, 0, 0)],
        "events": [store.runs.events("r1")],
        "corrections": [store.corrections.history(i) for i in ids],
        "standing": [store.corrections.of_case(i) for i in ids],
        "golds": [store.golds.of_case(i) for i in ids],
        "suggestions": [store.golds.suggested(i) for i in ids],
        "handlings": [store.queue_events.of_case(i) for i in ids],
        "items": [store.queue.get(i) for i in ids],
        "assignments": [store.queue.people_of(i) for i in ids],
        "prompts": [replace(edit, number=0) for edit in store.prompt_edits.all(project.id)],
        "guidelines": [replace(v, number=0) for v in store.guidelines.history(project.id)],
        "texts": store.prompt_edits.of_project(project.id),
        "batches": [(b, store.batches.rows(b.id)) for b in store.batches.all(project.id)],
    }  # fmt: skip


def test_everything_is_there_and_equal(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "two"
    project = taken(other, packed(home))
    with open_store(home) as store, open_store(other) as second:
        before = everything(store, home, project_of(store))
        assert everything(second, other, project) == before
        roles = {m.person: m.role for m in second.projects.members(project.id)}
    assert roles == {"lee": "admin", "ana": "annotator", "kim": "admin"}
    assert all(before.values())


def test_the_same_project_gives_the_same_bytes_and_comes_in_once(
    home: Path, tmp_path: Path
) -> None:
    data, other = packed(home), tmp_path / "two"
    assert data == packed(home)
    first = taken(other, data)
    assert taken(other, data) == first
    with open_store(other) as store:
        assert len(store.projects.all()) == 1
        assert len(store.cases.all(first.id)) == 1


def test_what_was_here_before_is_not_told_as_stored(home: Path, tmp_path: Path) -> None:
    data, other = packed(home), tmp_path / "two"
    with open_store(other) as store:
        new = import_archive(store, other, io.BytesIO(data), "kim", 100.0)
        again = import_archive(store, other, io.BytesIO(data), "kim", 200.0)
    assert new.words.startswith("“Towers” is here with 1 case, 2 files, 1 run,")
    assert again.words == "“Towers” was here before, so nothing was stored."
    assert set(again.counts.values()) == {0}
    assert again.counts.keys() == new.counts.keys()


def test_only_who_may_begin_a_project_takes_an_archive_in(home: Path, tmp_path: Path) -> None:
    data, other = packed(home), tmp_path / "two"
    with open_store(other) as store:
        first = ensure_project(store, "ann", 1.0)
        store.projects.set_member(Member(first.id, "kim", "lead", 2.0))
        second = Project("p2", "Second", 3.0)
        store.projects.save(second)
        store.projects.set_member(Member("p2", "kim", "admin", 3.0))
    with pytest.raises(NotAllowed, match="create a project takes the role admin"):
        taken(other, data)
    with open_store(other) as store:
        assert [one.name for one in store.projects.all()] == ["First project", "Second"]
        assert store.cases.all(first.id) == []
    assert not list((other / "documents").glob("*"))


def test_a_home_that_begins_with_an_archive_has_an_admin_in_the_browser(
    home: Path, tmp_path: Path
) -> None:
    """The command line's user is nobody there, and those of the other home may not be here."""
    for user, then in ((getpass.getuser(), "admin"), ("kim", "annotator")):
        with open_store(tmp_path / user) as store:
            data = io.BytesIO(packed(home))
            project = import_archive(store, tmp_path / user, data, user, 100.0).project
            assert {user, "lee"} <= set(store.projects.admins(project.id))
            name_guest(store, project.id, "Zoe", 101.0)
            assert store.projects.role_of(project.id, "Zoe") == then


def of_version_1(files: dict[str, bytes]) -> None:
    for names in LISTS_SINCE_VERSION.values():
        for name in names:
            del files[f"{name}.jsonl"]
    files[MANIFEST_NAME] = files[MANIFEST_NAME].replace(b'"version": 3', b'"version": 1')


def test_an_archive_of_the_first_version_still_comes_in(home: Path, tmp_path: Path) -> None:
    data, other = changed(packed(home), of_version_1, is_resummed=True), tmp_path / "two"
    project = taken(other, data)
    with open_store(other) as store:
        assert len(store.cases.all(project.id)) == 1
        assert store.prompt_edits.all(project.id) == []
        assert store.batches.all(project.id) == []
        assert store.guidelines.history(project.id) == []


def test_a_name_that_is_taken_is_told_apart(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "two"
    with open_store(other) as store:
        store.projects.save(Project("p", "Towers", 1.0))
        store.projects.set_member(Member("p", "kim", "admin", 1.0))
    assert taken(other, packed(home)).name == "Towers (2)"


Change = Callable[[dict[str, bytes]], None]


def changed(data: bytes, change: Change, *, is_resummed: bool = False) -> bytes:
    """The archive with other members, and a manifest that says so where that is asked for."""
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        files = {name: source.read(name) for name in source.namelist()}
    change(files)
    if is_resummed:
        manifest = json.loads(files[MANIFEST_NAME])
        manifest["files"] = {
            n: hashlib.sha256(d).hexdigest() for n, d in files.items() if n != MANIFEST_NAME
        }
        files[MANIFEST_NAME] = json.dumps(manifest).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(name, content)
    return stream.getvalue()


def newer(files: dict[str, bytes]) -> None:
    files[MANIFEST_NAME] = files[MANIFEST_NAME].replace(b'"version": 3', b'"version": 4')


def other_text(files: dict[str, bytes]) -> None:
    files["cases.jsonl"] = files["cases.jsonl"].replace(b"tower is old", b"tower is odd")


def other_document(files: dict[str, bytes]) -> None:
    name = next(name for name in files if name.startswith("documents/"))
    files[name] = b"other"


def other_case(files: dict[str, bytes]) -> None:
    files["golds.jsonl"] = files["golds.jsonl"].replace(b'"case_id": "', b'"case_id": "x')


def other_shape(files: dict[str, bytes]) -> None:
    files["golds.jsonl"] = b'{"id": 5}\n'


def other_row(files: dict[str, bytes]) -> None:
    files["batch_rows.jsonl"] = files["batch_rows.jsonl"].replace(b'"r1"', b'"r2"')


def other_batch(files: dict[str, bytes]) -> None:
    files["batches.jsonl"] = b""


def long_prompt(files: dict[str, bytes]) -> None:
    name = "prompts.jsonl"
    files[name] = files[name].replace(b"Now you", b"Now " + b"x" * 20_000)


def twice(files: dict[str, bytes]) -> None:
    files["golds.jsonl"] += files["golds.jsonl"]


def at_no_time(files: dict[str, bytes]) -> None:
    gold = json.loads(files["golds.jsonl"].splitlines()[0]) | {"at": 1e300}
    files["golds.jsonl"] = json.dumps(gold).encode() + b"\n"


def wild_rate(files: dict[str, bytes]) -> None:
    project = json.loads(files["project.json"]) | {"error_rate": 5.0}
    files["project.json"] = json.dumps(project).encode()


def without_cases(files: dict[str, bytes]) -> None:
    del files["cases.jsonl"]


@pytest.mark.parametrize(
    ("change", "is_resummed", "words"),
    [
        (newer, False, "version 1 to 3, found 4"),
        (other_text, False, "changed or damaged"),
        (other_text, True, "its own case"),
        (other_document, False, "changed or damaged"),
        (other_document, True, "bytes"),
        (other_case, True, "belong to one project"),
        (other_shape, True, "golds.jsonl"),
        (other_row, True, "belong to one project"),
        (other_batch, True, "belong to one project"),
        (long_prompt, True, "at most 20,000 characters"),
        (twice, True, "found one twice"),
        (at_no_time, True, "seconds since 1970"),
        (wild_rate, True, "error rate from 0.5% to 50%, found 500.0%"),
        (without_cases, True, "cases.jsonl"),
        (lambda files: files.update({"../../evil.txt": b"x"}), True, "evil"),
        (lambda files: files.update({"/etc/passwd": b"x"}), True, "passwd"),
        (lambda files: files.update({"documents/" + "0" * 64: b"x"}), True, "bytes"),
        (lambda files: files.pop(MANIFEST_NAME), False, "another zip file"),
        (lambda files: files.update({MANIFEST_NAME: b"[]"}), False, "another zip file"),
        (lambda files: files.update({MANIFEST_NAME: b"["}), False, "JSON"),
    ],
)  # fmt: skip
def test_a_changed_archive_is_refused_and_leaves_nothing(
    home: Path, tmp_path: Path, change: Change, is_resummed: bool, words: str
) -> None:
    data, other = changed(packed(home), change, is_resummed=is_resummed), tmp_path / "two"
    with pytest.raises(ReviewError, match=words):
        taken(other, data)
    with open_store(other) as store:
        assert store.projects.all() == []
    assert not (tmp_path / "evil.txt").exists()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_flipped_bit_is_refused_in_a_sentence(home: Path, tmp_path: Path, method: int) -> None:
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(packed(home))) as source,
        zipfile.ZipFile(stream, "w", method) as target,
    ):
        for name in source.namelist():
            target.writestr(name, source.read(name))
    whole = stream.getvalue()
    refused = 0
    for number in range(0, len(whole), max(1, len(whole) // 150)):
        data = bytearray(whole)
        data[number] ^= 0x40
        try:
            taken(tmp_path / "two", bytes(data))
        except ReviewError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    "data", [b"", b"no zip", b"PK\x03\x04" + b"x" * 100, b"PK\x05\x06" + b"\0" * 18]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ReviewError):
        taken(tmp_path / "two", data)


def test_a_bomb_is_refused_unread(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_ARCHIVE_BYTES", 1_000_000)
    data = changed(packed(home), lambda f: f.update({"golds.jsonl": b" " * 2_000_000}))
    assert len(data) < 100_000
    with pytest.raises(ReviewError, match="left unread"):
        taken(tmp_path / "two", data)


def test_the_command_line_moves_a_project(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, other = str(tmp_path / "project.zip"), tmp_path / "two"
    assert main(["export", "--format", "archive", "--out", out, "--home", str(home)]) == 0
    assert main(["import", "--format", "archive", out, "--home", str(other), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["cases"] == 1
    assert main(["import", "--format", "archive", out, "--home", str(other), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["cases"] == 0
    assert captured.err == "“Towers” was here before, so nothing was stored.\n"
    with open_store(home) as store, open_store(other) as second:
        rows = [kept_rows(s) for s in (store, second)]
    assert rows[0] == rows[1]
    assert main(["import", "--format", "archive", out, "--as", "cases", "--home", str(other)]) == 2


def kept_rows(store: Store) -> list[object]:
    from core.exchange.exporter import load_project_rows
    from tests.exchange.stores import NOWHERE

    return [kept(row) for row in load_project_rows(store, NOWHERE, project_of(store))]
