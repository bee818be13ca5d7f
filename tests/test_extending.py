"""The examples of docs/extending.md, put into a copy of the product as they stand there, work."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_architecture import ROOT

BLOCKS = re.findall(
    r"^```(?:python|markdown)\n(.*?)^```$",
    (ROOT / "docs/extending.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)
FILE = re.compile(r"(?:# |<!-- )((?:core|components)/[\w/]+\.(?:py|md))\b.*\n")
HEAD = re.compile(r"# above all of (\S+)\n")
RECORD = re.compile(r"# in (\w+) of (\S+)\n")
OURS = ("core", "components", "tests")
LARGEST = 1_000_000  # bytes of a file that is copied


def copied(source: str, target: str) -> None:
    """A copy; of what is large and the same, a link."""
    if Path(source).stat().st_size > LARGEST:
        Path(target).symlink_to(source)
    else:
        shutil.copyfile(source, target)


def put(block: str, tree: Path) -> None:
    """Do what a contributor does with a block: write a file, or a record into a registry."""
    if found := FILE.match(block):
        path = tree / found[1]
        path.parent.mkdir(exist_ok=True)
        assert not path.exists(), f"{path} is there already"
        path.write_text(block if path.suffix == ".md" else block[found.end() :], encoding="utf-8")
    elif found := HEAD.match(block):
        path = tree / found[1]
        _edit(path, r"^from core\.", block[found.end() :] + "from core.")
    elif found := RECORD.match(block):
        path, record = tree / found[2], block[found.end() :]
        if key := re.match(r'    "\w+":', record):  # takes the place of one of the same name
            text = path.read_text(encoding="utf-8")
            text = re.sub(rf"^{re.escape(key[0])}.*\n", "", text, flags=re.MULTILINE)
            path.write_text(text, encoding="utf-8")
        _edit(path, rf"^{found[1]}\b.*? = [({{]", rf"\g<0>\n{record}")
    else:
        raise AssertionError(f"nobody is told where this belongs: {block[:80]}")


def _edit(path: Path, pattern: str, new: str) -> None:
    text, count = re.subn(
        pattern, new, path.read_text(encoding="utf-8"), count=1, flags=re.MULTILINE
    )
    assert count == 1, f"{path} has no {pattern}"
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product with all examples in it."""
    tree = tmp_path_factory.mktemp("extended")
    for name in ("core", "components"):
        unread = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tree / name, copy_function=copied, ignore=unread)
    for name in (".models", "requirements.txt"):
        (tree / name).symlink_to(ROOT / name)
    for block in BLOCKS:
        put(block, tree)
    return tree


@pytest.fixture(autouse=True)
def _extended(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports is the product with the examples in it."""
    kept = {name: sys.modules[name] for name in _ours()}
    for name in kept:
        del sys.modules[name]
    monkeypatch.syspath_prepend(tree)
    yield
    for name in _ours():
        del sys.modules[name]
    sys.modules.update(kept)


def _ours() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in OURS]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_each_example_is_short(block: str) -> None:
    assert len(block.splitlines()) < 60
    assert max(map(len, block.splitlines())) <= 100 or block.startswith("<!--")


def test_a_check_by_the_protocol_comes_to_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from components.widgets.wording import format_protocol
    from core.__main__ import main
    from core.debate.protocols import DEBATES, PROTOCOLS

    (tmp_path / "facts.txt").write_text("The tower is 412 m tall. It was built in 1931.")
    asked = ["check", "--protocol", "poll", "--claim", "The tower is 512 m tall."]
    assert main([*asked, "--document", str(tmp_path / "facts.txt")]) == 0
    assert capsys.readouterr().out.startswith("HALLUCINATED")
    assert "poll" in DEBATES, "an adaptive check can go on to it"
    assert PROTOCOLS["poll"].name == "poll"
    assert format_protocol("poll", short=True) == "Poll"


def test_the_debaters_vote_on_the_first_answer() -> None:
    from core.debate.protocols import PROTOCOLS
    from core.schema.records import Plan
    from tests.debates import arguing, built_in, kinds, turns
    from tests.fakes import make_case, make_passage, make_view

    protocol, fact = PROTOCOLS["poll"], make_passage("The tower is 412 m tall.")
    view = make_view(make_case("The tower is 512 m tall."), [fact])
    events = list(arguing(protocol.argue, view, built_in()).events())
    assert [turn.manner for turn in turns(events)] == ["answer", "debate", "debate"]
    assert len(turns(events)) == protocol.calls(3, Plan("poll")).total
    last = next(event for event in events if event.kind == "judgement_reached")
    assert last.judgement.label == "hallucinated"
    said = [event for event in events if event.kind == "turn_finished"]
    again = list(arguing(protocol.argue, view, built_in(), past=said).events())
    assert kinds(again) == ["judgement_reached"], "after Resume no turn is taken twice"


def test_the_tool_is_called_through_the_registry() -> None:
    from core.runtime.concurrency import StopSignal
    from core.tools.registry import ToolContext, get_tool, read_input, use_tool
    from tests.fakes import make_case

    tool = get_tool("isbn")
    text = "See ISBN 978-3-16-148410-0 and ISBN 0-306-40615-3."
    told = use_tool(tool, read_input(tool, f'{{"text": "{text}"}}'), ToolContext(StopSignal()))
    assert (told.outcome, told.label) == ("found", "hallucinated")
    assert text[told.start : told.end] == "0-306-40615-3"
    assert [
        use_tool(tool, one.given, ToolContext(StopSignal())).label for one in tool.examples
    ] == [one.label for one in tool.examples]
    assert tool.reads is not None
    assert tool.reads(None, make_case(text)) is not None
    assert tool.reads(None, make_case("It has 320 pages.")) is None


def test_a_file_of_the_new_type_becomes_a_source_with_passages() -> None:
    from core.documents.isolation import read_source
    from core.documents.readers import detect_kind, list_endings
    from core.documents.retrieval import split_passages
    from core.runtime.concurrency import StopSignal
    from core.runtime.config import Settings

    data = (
        b"1\r\n00:00:01,000 --> 00:00:03,000\r\n<i>The museum had</i>\r\n\r\n"
        b"2\r\n00:00:03,500 --> 00:00:05,000 X1:1\r\nfifty thousand visitors.\r\n\r\n"
        b"3\r\n00:00:07,000 --> 00:00:09,000\r\n{\\an8}It opened in 1987.\r\n"
    )
    kind = detect_kind("film.srt", data)
    source = read_source(
        "a" * 64, "film.srt", data, kind, Settings(), StopSignal(), lambda *_: None
    )
    said = ["The museum had fifty thousand visitors.", "It opened in 1987."]
    assert [source.text[one.start : one.end] for one in split_passages(source)] == said
    assert (source.kind, source.language) == ("subtitles", "en")
    assert "srt" in list_endings(), "the page offers it"


def test_a_row_goes_out_and_in_through_the_registry() -> None:
    from core.exchange.registry import FORMATS, WRITABLE_FORMATS, detect_format

    data = (
        b'{"id": 7, "text": "The tower is 512 m tall.", "label": [[13, 18, "number_or_date"]]}\n'
        b'{"id": 8, "text": "It stands in Bergen.", "label": []}\n'
        b'{"id": 9, "text": "It is tall.", "label": [[0, 99, "x"]]}\n'
    )
    assert detect_format("rows.jsonl", data) == "doccano"
    assert "doccano" in WRITABLE_FORMATS
    own = FORMATS["doccano"]
    assert own.write is not None
    read = own.read("rows.jsonl", data)
    first, second = read.rows
    assert first.answer is not None
    assert (first.answer.label, first.answer.spans[0].text) == ("hallucinated", "512 m")
    assert second.answer is None
    assert [problem.place for problem in read.problems] == [3]
    again = own.read("rows.jsonl", own.write(read.rows))
    assert again.rows == read.rows


def test_a_call_in_the_language_sends_its_prompt() -> None:
    from core.agents.llm_judge import LlmJudge
    from core.llm.prompting import FIELDS, LANGUAGES, load_shipped_prompt
    from core.runtime.concurrency import StopSignal
    from tests.agents.seats import SEAT, judge_view, workplace
    from tests.fakes import make_case, make_passage, make_view

    place = workplace(["Die Quelle sagt 412 m.\nVerdict: 0"])
    case = make_case("Der Turm ist 512 m hoch.", language="de-AT")
    view = judge_view(make_view(case, [make_passage("Der Turm ist 412 m hoch.")]))
    judgement = LlmJudge(SEAT, place.work).decide(replace(view, mode="plain"), StopSignal())
    assert judgement.label == "hallucinated"
    assert place.desk.asked[0].prompt == "de/judge_plain"
    assert "Du entscheidest, ob eine Behauptung richtig ist." in place.prompt
    assert LANGUAGES == ("de", "en", "zh")
    assert all(
        f"${{{name}}}" in load_shipped_prompt("judge_plain", "de").text
        for name in FIELDS["judge_plain"]
    )
    assert load_shipped_prompt("judge", "de").text == load_shipped_prompt("judge", "en").text, (
        "not translated yet"
    )


def test_the_agent_answers_in_its_seat() -> None:
    from core.agents.rosters import build_roster
    from core.runtime.concurrency import StopSignal
    from core.schema.rosters import RosterConfig
    from tests.agents.seats import SEAT, workplace
    from tests.fakes import make_case, make_passage, make_view
    from tests.readers import word_assessor

    place = workplace(["How tall is the tower?"])
    work = replace(place.work, assessor=word_assessor())
    writer = build_roster(
        RosterConfig("Asking", context_writer=SEAT, judge=SEAT), work
    ).context_writer
    view = make_view(make_case("The tower is 512 m tall."), [make_passage("It is 412 m tall.")])
    context = writer.write(view, ["Ada", "Ben"], StopSignal())
    assert context.summary == "How tall is the tower?"
    assert [share.passages for share in context.shares] == [context.whole] * 2
    assert place.desk.asked[0].prompt == "en/question"
    assert "⟦claim" in place.prompt
