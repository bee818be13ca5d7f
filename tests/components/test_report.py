"""The report stands alone, says everything, and keeps people's texts texts, in four formats."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from dataclasses import replace

import pypdfium2 as pdfium
import pytest
from docx import Document
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from components.report import (
    MAX_SPAN_CHARS,
    MAX_SUMMARY_CHARS,
    build_report,
)
from components.report_formats import (
    Paragraph,
    Report,
    ReportTable,
    Words,
    write_docx,
    write_html,
    write_markdown,
    write_pdf,
)
from components.run.corrected_text import (
    MARKED_VALUES_AUTHOR,
    propose_correction,
    summarize_changes,
)
from components.run.evidence import build_span_marks
from components.run.replay import replay_until, schedule_events
from components.run.verdict import (
    TOO_FEW_VERDICTS,
    PastVerdicts,
    PersonVerdict,
    describe_measured_reliability,
    describe_reliability,
    find_person_verdict,
)
from components.widgets.html import describe_changes, element, iter_changes
from components.widgets.wording import (
    break_long_words,
    clip_text,
    escape_markdown,
    format_percent,
    format_source,
    make_file_name,
)
from core.schema.events import (
    DebateDecided,
    Event,
    JudgementReached,
    LabelPredicted,
    MemoryEntry,
    PassagesFound,
    ProblemMet,
    ResponseRevised,
    RunFinished,
    RunStarted,
    SpanAdjudicated,
    StatementFound,
    TurnFinished,
    TurnStarted,
)
from core.schema.records import (
    BoundingBox,
    Judgement,
    Label,
    Passage,
    Plan,
    Quote,
    ReaderStance,
    RoleAssignment,
    Run,
    Span,
    Statement,
    Turn,
    Verdict,
)
from core.schema.reviews import (
    Correction,
    EvidenceMark,
    GoldAnswer,
    ImageBox,
    Ratings,
    StatementLabel,
)
from core.schema.run_state import RunState, fold_events
from core.store.ground_truth import decide_truth
from tests.audit import audit_events
from tests.fakes import make_case

CLAIM = "The tower is 512 m tall. ``` <script>alert(1)</script> 北京 العربية"
CASE = make_case(CLAIM, question="How tall <b>is</b> it?")
VERDICT = Verdict("hallucinated", 0.83, 0.83, "It says <i>412 m</i>.", classifier="seed")
QUOTE = Quote("The tower is 412 m tall.", "verified", 100.0, "s", "facts.pdf", 3, 0, 24)
PASSAGE = Passage("s:0", "s", "facts.pdf", False, 3, 0, 24, "The tower is 412 m tall.", 1.0)
SPAN = Span(13, 18, "512 m", 0.9, "number_or_date", "Value checker", "412 m", QUOTE)
TURNS = [
    Turn("Ada", "Value checker", 1, 1, "deny", "hallucinated", "DENY. One two three.", (QUOTE,)),
    Turn("Ben", "Overlap reader", 2, 1, "agree", "hallucinated", "AGREE. Four five six."),
]
EVENTS: list[Event] = [
    RunStarted(100.0, CASE, Plan(), ()),
    StatementFound(100.1, Statement(0, 0, len(CLAIM), CLAIM, CLAIM)),
    PassagesFound(100.2, 0, (PASSAGE,)),
    TurnStarted(101.0, "Ada", "Value checker", 1, 1),
    TurnFinished(105.0, TURNS[0], 4.0),
    TurnStarted(106.0, "Ben", "Overlap reader", 2, 1),
    TurnFinished(108.0, TURNS[1], 2.0),
    JudgementReached(109.0, Judgement("Judge", "hallucinated", "wrong"), 1.0),
    LabelPredicted(109.5, VERDICT),
    SpanAdjudicated(109.6, SPAN, True, "kept"),
    RunFinished(110.0, VERDICT, 10.0),
]
RUN = Run("r" * 32, "case", "project", Plan(classifier="seed"), "finished", 100.0, 110.0)
BLOCK_TOKENS = {
    f"{name}_{end}"
    for name in ("heading", "paragraph", "table", "thead", "tbody", "tr", "th", "td")
    for end in ("open", "close")
} | {"inline"}
CARD = {"reliability": [{"low": 0.8, "high": 0.9, "n": 212, "right": 184}]}
SAID = [Correction("k", RUN.id, "case", "Mira", 200.0, "supported", reason="<u>p. 3</u>")]


def progress() -> RunState:
    made = RunState()
    for event in EVENTS:
        made.add(event)
    return made


def test_the_html_report_is_whole_and_fetches_nothing() -> None:
    made = write_html(build_report(RUN, CASE, progress(), SAID, CARD))
    assert made.startswith("<!doctype html>")
    assert not re.search(r"(src|href)\s*=|@import|url\(", made)
    assert "<script" not in made
    for words in ("Hallucinated", "512 m", "412 m", "facts.pdf", "One two three.", "Mira"):
        assert words in made
    assert "&lt;u&gt;p. 3&lt;/u&gt;" in made
    assert "How tall &lt;b&gt;is&lt;/b&gt; it?" in made


def read_markdown(text: str) -> list[Token]:
    """Return the blocks of a Markdown text, as GitHub would read it."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def test_the_markdown_report_has_no_walls_of_code_and_keeps_texts_texts() -> None:
    made = write_markdown(build_report(RUN, CASE, progress(), SAID, CARD, person=leads(SAID)))
    kinds = {token.type for token in read_markdown(made)}
    kinds |= {part.type for token in read_markdown(made) for part in token.children or ()}
    assert not kinds & {"fence", "code_block", "html_block", "link_open", "image"}
    html = MarkdownIt("commonmark").enable("table").render(made)
    assert "&lt;script&gt;" in html
    assert "<u>" not in html
    assert "<strong>The machine: Hallucinated</strong>, 83% likely" in html


def test_neither_spaces_nor_line_breaks_change_how_markdown_reads() -> None:
    removed = Words("one\ntwo", "removed")
    for text in (" # x", " - x", "1999. x"):
        report = Report("t", [Paragraph([Words(text)]), Paragraph([removed])], [])
        tokens = read_markdown(write_markdown(report))
        assert [t.type for t in tokens].count("heading_open") == 1, "the title's"
        assert not {t.type for t in tokens} & {"bullet_list_open", "ordered_list_open"}
        parts = [part.type for token in tokens for part in token.children or ()]
        assert parts.count("s_open") == 2


@given(st.text(max_size=200))
def test_no_text_is_markup_in_any_format(text: str) -> None:
    """Whatever somebody wrote, a Markdown reader shows as text, and Word's XML can hold."""
    marked = [Words(text), Words(text, "wrong")]
    report = Report(text, [Paragraph(marked, "text"), ReportTable(("a",), (100,), [[marked]])], [])
    tokens = read_markdown(write_markdown(report))
    parts = {part.type for token in tokens for part in token.children or () if part}
    assert {token.type for token in tokens} <= BLOCK_TOKENS
    assert parts <= {"text", "softbreak", "hardbreak", "strong_open", "strong_close"}
    assert write_docx(report).startswith(b"PK")
    html = write_html(report)
    assert html.count("<script") == 0


def leads(answers: Sequence[Correction], *golds: GoldAnswer) -> PersonVerdict | None:
    return find_person_verdict(decide_truth(golds, answers), answers)


def test_a_person_s_decision_and_marks_come_before_the_machine_s_verdict() -> None:
    marked = replace(SPAN, start=4, end=9, text=CLAIM[4:9], source="Mira", quote=None, instead="x")
    said = replace(SAID[0], spans=(marked,), label="hallucinated")
    text = write_markdown(build_report(RUN, CASE, progress(), [said], CARD, person=leads([said])))
    order = ["**Confirmed by Mira: Hallucinated**", "p. 3", "**The machine: Hallucinated**"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert f"**{CLAIM[4:9]}**" in text, "the person's mark"
    assert text.index(f"**{CLAIM[4:9]}**") < text.index("## Words that the machine marked")
    assert text.index("512 m") < text.index("**512 m**"), "the machine's mark is in the details"
    other = write_markdown(build_report(RUN, CASE, progress(), SAID, None, person=leads(SAID)))
    assert "**Overruled by Mira: Supported**" in other
    gold = GoldAnswer("g", CASE.id, "Karl", 300.0, "adjudicated", "supported")
    lead = leads([said], gold)
    settled = write_markdown(build_report(RUN, CASE, progress(), [said], CARD, person=lead))
    assert "**Settled by Karl: Supported**" in settled


def test_a_report_follows_what_people_say_and_tells_where_they_disagree() -> None:
    wrong = replace(SAID[0], id="l", author="Jo", label="hallucinated", corrected_answer=RIGHT)
    apart = [*SAID, wrong]
    text = write_markdown(build_report(RUN, CASE, progress(), apart, None, person=leads(apart)))
    lead = "**2 people disagree**  \nMira says supported  \nJo says hallucinated"
    assert lead in text
    assert f"Proposed by {MARKED_VALUES_AUTHOR}." in text
    text = write_markdown(build_report(RUN, CASE, progress(), SAID, None, person=leads(SAID)))
    assert "Corrected text" not in text, "Mira says that nothing is wrong"
    text = write_markdown(build_report(RUN, CASE, progress(), [], None, person=leads([wrong])))
    assert "Proposed by Jo." in text


def test_a_debate_on_several_statements_has_their_table_with_the_person_s_labels() -> None:
    case = make_case("The tower is 512 m tall. It is red.")
    labels: tuple[Label, ...] = ("hallucinated", "supported")
    made = fold_events(
        [
            RunStarted(100.0, case, Plan(), ()),
            StatementFound(100.1, Statement(0, 0, 24, case.response[:24], case.response[:24])),
            StatementFound(100.1, Statement(1, 25, 35, case.response[25:], case.response[25:])),
            JudgementReached(
                109.0, Judgement("J", "hallucinated", "wrong", statement_labels=labels), 1.0
            ),
            LabelPredicted(109.5, VERDICT),
            SpanAdjudicated(109.6, SPAN, True, "kept"),
            RunFinished(110.0, VERDICT, 10.0),
        ]
    )
    given = StatementLabel(25, 35, "unclear")
    said = replace(SAID[0], label="hallucinated", spans=(SPAN,), statements=(given,))
    text = write_markdown(build_report(RUN, case, made, [said], None, person=leads([said])))
    first, second = (line for line in text.splitlines() if re.match(r"\| [12] \| (The|It)", line))
    assert "**512 m**" in first
    assert "**Hallucinated** | “The tower is 412 m tall.”" in first
    assert "**Unclear** Machine: Supported" in second
    assert "Words that the machine marked" not in text, "they are the person's, told above"


def test_what_was_found_is_told_of_statements_called_wrong_or_unclear_in_their_order() -> None:
    """Nobody marked words: passages and the readers' views say what the label rests on."""
    case = make_case("It is tall. It is red. It is old. It is new.")
    places = [(0, 11), (12, 22), (23, 33), (34, 44)]
    texts = [case.response[start:end] for start, end in places]
    found = [
        replace(PASSAGE, id=f"s:{index}", text=f"Passage {index + 1}.")
        for index in range(len(texts))
    ]
    labels: tuple[Label, ...] = ("supported", "supported", "unclear", "unclear")
    views = [
        view
        for index, label in enumerate(labels)
        for view in (
            ReaderStance("Value checker", index, "supported"),
            ReaderStance("Overlap reader", index, label),
        )
    ]
    judged = Judgement("J", "unclear", "", statement_labels=labels, readers=tuple(views))
    made = fold_events(
        [
            RunStarted(100.0, case, Plan(), ()),
            *(
                StatementFound(100.1, Statement(index, *place, text, text))
                for index, (place, text) in enumerate(zip(places, texts, strict=True))
            ),
            *(PassagesFound(100.2, index, (found[index],)) for index in (2, 0, 1)),
            JudgementReached(109.0, judged, 1.0),
            RunFinished(110.0, replace(VERDICT, label="unclear"), 10.0),
        ]
    )
    wrong = StatementLabel(*places[1], "hallucinated")
    said = replace(SAID[0], label="hallucinated", statements=(wrong,))
    report = build_report(RUN, case, made, [said], None, person=leads([said]))
    text = write_markdown(report)
    rows = [line for line in text.splitlines() if re.match(r"\| \d \| It", line)]
    assert [("Passage" in row, "Overlap reader" in row) for row in rows] == [
        (False, False), (True, True), (True, True), (False, True)
    ]  # fmt: skip
    assert "“Passage 2.” (facts.pdf, p. 3)" in rows[1]
    assert "No passage was found." in rows[3]
    assert "<br>" not in text
    evidence = text[text.index("## Evidence") :]
    numbers = re.findall(r"Passage (\d)\. \(facts.pdf, p. 3; statement (\d)\)", evidence)
    assert numbers == [("1", "1"), ("2", "2"), ("3", "3")]
    checked = text[text.index("## How it was checked") :]
    assert re.findall(r"(\d)\\?\. Value checker", checked) == ["1", "2", "3", "4"]
    (cell,) = re.findall(r"<td[^>]*>[^<]*(?:<[^>]*>)?Hallucinated", write_html(report))
    assert "<mark" not in cell, "a label is no mark"


def test_a_report_begins_with_the_run_s_name_or_the_claim_s_first_words() -> None:
    words = write_html(build_report(replace(RUN, name="Board <draft>"), CASE, progress(), [], CARD))
    assert '<h1 dir="auto">Board &lt;draft&gt;</h1>' in words
    assert "<title>Board &lt;draft&gt;</title>" in words
    assert build_report(RUN, CASE, progress(), [], CARD).title.startswith(CLAIM[:20])


def test_files_that_could_not_be_read_are_named_in_the_summary() -> None:
    made = progress()
    words = "“scan.pdf” could not be read: it is damaged."
    made.add(ProblemMet(100.1, "reading", words, source="scan.pdf", source_id="s"))
    summary = build_report(RUN, CASE, made, [], CARD).summary
    said = "".join(
        part.text for block in summary if isinstance(block, Paragraph) for part in block.words
    )
    assert f"Not read: {words}" in said
    assert write_markdown(build_report(RUN, CASE, made, [], CARD)).count("it is damaged") == 1


SCRIPTS = {
    "en": "The bridge is 512 m long.",
    "ar": "افتتح الجسر عام 1931 وطوله 412 مترًا.",
    "hi": "यह पुल 1931 में खोला गया था।",
    "zh": "这座桥于1931年通车，全长412米。",
}


def read_pdf(data: bytes) -> list[str]:
    """Return the text of each page of a PDF, without the spaces that its layout makes."""
    pages = pdfium.PdfDocument(data)
    return ["".join(page.get_textpage().get_text_range().split()) for page in pages]


@pytest.mark.parametrize("language", SCRIPTS)
def test_every_format_holds_every_script(language: str) -> None:
    text = SCRIPTS[language]
    case = replace(CASE, response=text)
    span = replace(SPAN, start=0, end=6, text=text[:6])
    made = progress()
    made.rulings = [replace(made.rulings[0], span=span)]
    word = Document(io.BytesIO(write_docx(build_report(RUN, case, made, [], CARD))))
    assert text in [paragraph.text for paragraph in word.paragraphs]
    right_to_left = [p.text for p in word.paragraphs if p._p.xpath(".//w:bidi")]
    assert bool(right_to_left) == (language == "ar")
    pdf = write_pdf(build_report(RUN, case, made, [], CARD))
    (page,) = read_pdf(pdf)
    assert "lack" not in page
    if language in ("en", "zh"):  # readers put the letters of others in another order
        assert "".join(text.split()) in page


def test_a_pdf_names_the_letters_that_it_cannot_show() -> None:
    case = replace(CASE, response="สะพาน is a bridge 🙂.")
    (words,) = read_pdf(write_pdf(build_report(RUN, case, RunState(case=case), [], CARD)))
    assert "lack6characters" in words
    assert "U+0E2A" in words
    assert "Word" in words


def test_the_summary_of_a_long_audit_fits_three_screens_and_a_page() -> None:
    """25 statements as of a response of 300 words: what is unfolded, and where its page ends."""
    sentence = "The company replaced 14 km of its pipes in the year 2024 again."
    response = " ".join([sentence] * 25)
    case = replace(CASE, response=response, question="")
    made = RunState(case=case, verdict=VERDICT)
    for index in range(25):
        start = index * (len(sentence) + 1)
        made.statements[index] = Statement(index, start, start + len(sentence), sentence, sentence)
        made.memory[index] = MemoryEntry(
            index, "supported", 0.2, f"The source says so: “{sentence}” (report.md).", ("match",)
        )
    report = build_report(RUN, case, made, [], CARD)
    html = write_html(report)
    assert html.count(f">{sentence}<") == 25, "each statement once"
    assert html.count('<details class="cp-section">') == len(report.details) >= 3
    assert "Checkedagainst" in read_pdf(write_pdf(report))[0]


def test_a_judge_and_a_classifier_that_differ_are_named_in_both_reports() -> None:
    made = progress()
    made.add(JudgementReached(109.0, Judgement("Judge", "supported", "right"), 1.0))
    for write in (write_html, write_markdown):
        words = write(build_report(RUN, CASE, made, SAID, CARD))
        assert "The judge itself calls it supported" in words
        assert "calls it hallucinated, and its label counts" in words
        assert "The judge itself" not in write(build_report(RUN, CASE, progress(), SAID, CARD))


def test_what_the_verdict_says_of_itself_is_no_further_problem() -> None:
    why = "Judge (x): no verdict line. So there is no verdict."
    unclear = Verdict("unclear", None, None, why, "unreadable_reply", why)
    made = progress()
    for event in (
        ProblemMet(105.5, "debating", "Ben's turn 2 is lost."),
        ProblemMet(109.0, "judging", why, reply="Who knows?"),
        LabelPredicted(109.5, unclear),
        RunFinished(110.0, unclear, 10.0),
    ):
        made.add(event)
    for write in (write_html, write_markdown):
        words = re.sub(r"<[^>]+>", " ", write(build_report(RUN, CASE, made, [], CARD)))
        assert "Ben&#x27;s turn 2" in words or "Ben's turn 2 is lost." in words
        assert words.count("no verdict line") == 1


def test_a_language_model_as_judge_is_not_said_to_contest_nothing() -> None:
    made = progress()
    own = RoleAssignment("judge", "Judge", True, "rule", "a")
    for used, is_said in ((own, True), (replace(own, built_in=False), False)):
        made.roles = (used,)
        assert (
            "Contested by several" in write_html(build_report(RUN, CASE, made, [], CARD))
        ) is is_said


def test_a_probability_is_said_to_be_worth_what_was_measured() -> None:
    assert describe_measured_reliability(VERDICT, CARD, RunState()) == (
        "Of 212 labelled public statements with a confidence like this, 87% were right."
    )
    assert describe_measured_reliability(VERDICT, None, RunState()).startswith("Too few verdicts")
    by_tool = RunState(judgement=Judgement("Judge", VERDICT.label, "So.", by_tool="Length"))
    assert describe_measured_reliability(VERDICT, CARD, by_tool).startswith(
        "A tool decided this (length)"
    )
    few = {"reliability": [{"low": 0.8, "high": 0.9, "n": 3, "right": 3}]}
    assert describe_measured_reliability(VERDICT, few, RunState()).startswith("Too few verdicts")


def test_past_verdicts_of_the_project_go_before_what_was_measured_elsewhere() -> None:
    measured = "Of 212 labelled public statements with a confidence like this, 87% were right."
    known = PastVerdicts("Of past verdicts at this level, 91% were right.", "Counted are …", True)
    few = PastVerdicts("Only 4 past verdicts at this level were looked at.")
    assert describe_reliability(VERDICT, CARD, RunState(), known) == known.words
    assert describe_reliability(VERDICT, CARD, RunState(), few) == measured, "not both"
    assert describe_reliability(VERDICT, None, RunState(), few) == few.words
    assert describe_reliability(VERDICT, None, RunState(), PastVerdicts()) == TOO_FEW_VERDICTS


def test_both_reports_say_what_past_verdicts_tell_and_that_people_must_decide() -> None:
    past = PastVerdicts("Of past verdicts, 91% were right.", "how", True, "For <b>people</b>.")
    html = write_html(build_report(RUN, CASE, progress(), SAID, CARD, past))
    assert "91% were right" in html
    assert "<strong>For &lt;b&gt;people&lt;/b&gt;.</strong>" in html
    markdown = write_markdown(build_report(RUN, CASE, progress(), SAID, CARD, past))
    assert "83% likely\n\nOf past verdicts, 91% were right." in markdown
    assert r"**For \<b\>people\</b\>.**" in markdown


def test_no_probability_is_rounded_to_certainty() -> None:
    assert format_percent(0.999) == "over 99%"
    assert format_percent(0.001) == "under 1%"
    assert format_percent(0.834) == "83%"


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("Built in the year 2024 again", 22, "Built in the year…"),
        ("It admitted 8,412 inpatients", 15, "It admitted…"),
        ("It admitted 8,412 inpatients", 18, "It admitted 8,412…"),
        ("في عام ٢٠٢٤ وحده", 10, "في عام…"),
        ("20242024", 5, "2024…"),
        ("加利西亚位于", 12, "加利西亚位于"),
        ("加利西亚位于西班牙", 12, "加利西亚位…"),
    ],
)
def test_no_text_is_cut_inside_a_number(text: str, limit: int, shown: str) -> None:
    assert clip_text(text, limit) == shown


def test_markdown_in_names_is_shown_letter_by_letter() -> None:
    assert (
        escape_markdown("*a* [b](c) `d` $x$ # 10:15") == r"\*a\* \[b\]\(c\) \`d\` \$x\$ \# 10\:15"
    )


@pytest.mark.parametrize(
    "text", [":red[e]", ":material/home:", ":dog:", "http://e.com", "www.e.com", "a@e.com"]
)
def test_icons_colours_and_addresses_in_names_stay_text(text: str) -> None:
    """They are made after backslashes are gone: an invisible joiner must part them."""
    shown = escape_markdown(text).replace("\\", "")
    assert shown != text
    assert shown.replace("\u2060", "") == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("see annual-report_final.version-3.pdf", "see annual-|report_|final.|version-|3.|pdf"),
        ("Harbour.Authority.2024.01.31.txt", "Harbour.|Authority.|2024.01.31.|txt"),
        ("3.14159265358979323846264338327", "3.14159265358979323846264338327"),
        ("https://e.com/annual-report_final.pdf", "https://e.com/annual-report_final.pdf"),
        ("short-name.pdf", "short-name.pdf"),
    ],
)
def test_file_names_break_at_dots_and_dashes(text: str, parts: str) -> None:
    assert break_long_words(text, "|") == parts
    assert str(element("p", text)) == f"<p>{parts.replace('|', '<wbr>')}</p>"
    assert str(element("title", text)) == f"<title>{text}</title>"


@pytest.mark.parametrize(
    ("name", "words"), [("chart.png", "chart.png"), ("report.pdf", "report.pdf, p. 1")]
)
def test_an_image_has_no_pages(name: str, words: str) -> None:
    assert format_source(Quote("4120", "verified", source=name, page=1)) == words


def test_a_replay_at_recorded_pace_keeps_the_times() -> None:
    placed = schedule_events(EVENTS, "recorded")
    assert [cue.at for cue in placed][-1] == 10.0
    before, speaking = replay_until(placed, 3.0)
    assert before.turns == []
    assert {n: (one.asked.debater, one.words) for n, one in speaking.items()} == {
        1: ("Ada", "DENY. One")
    }
    after, _ = replay_until(placed, 10.0)
    assert [turn.number for turn in after.turns] == [1, 2]
    assert after.verdict == VERDICT


def test_a_replay_at_reading_pace_gives_time_to_read() -> None:
    placed = schedule_events(EVENTS, "reading")
    ats = [cue.at for cue in placed]
    assert ats == sorted(ats)
    spoken = [cue.at for cue in placed if cue.event.kind.startswith("turn_")]
    assert spoken[1] - spoken[0] > 1.0


def test_an_empty_run_replays_to_nothing() -> None:
    assert schedule_events([], "recorded") == []
    assert replay_until([], 5.0)[0].turns == []


def test_spans_that_all_lie_in_each_other_do_not_fill_the_report() -> None:
    made = progress()
    case = replace(CASE, response="word " * 2_000)
    for n in range(200):
        span = replace(SPAN, start=n, end=10_000 - n, text=case.response[n : 10_000 - n])
        made.add(SpanAdjudicated(109.6, span, True, "kept"))
    for write in (write_html, write_markdown):
        assert len(write(build_report(RUN, case, made, SAID, CARD))) < 200 * (MAX_SPAN_CHARS + 1000)


def test_a_report_tells_all_that_a_person_said() -> None:
    said = replace(
        SAID[0],
        label="hallucinated",
        machine_label="supported",
        spans=(SPAN,),
        corrected_answer="412 m",
        evidence=(EvidenceMark("s", 0, 5, "412 m", "supports"),),
        boxes=(ImageBox("i", BoundingBox(0.1, 0.1, 0.5, 0.5), "number_or_date", "here"),),
        ratings=Ratings(accuracy=2),
        comment="<i>look again</i>",
    )
    made = html.unescape(write_html(build_report(RUN, CASE, progress(), [said], CARD)))
    for words in (
        "hallucinated (the machine: supported): <u>p. 3</u>. Wrong words: “512 m” → “412 m”. ",
        "Right: 412 m. ",
        "“412 m” supports it. A box in the image, number or date: here. Accuracy 2 of 5. ",
        "Comment: <i>look again</i>",
    ):
        assert words in made
    assert "<i>look again</i>" not in write_html(build_report(RUN, CASE, progress(), [said], CARD))


def test_an_audit_stands_in_both_reports_and_keeps_texts_texts() -> None:
    made = fold_events(audit_events.told())
    html_made = write_html(build_report(RUN, audit_events.CASE, made, [], CARD))
    (table,) = re.findall(r"<table [^>]*><colgroup>.*?Statement.*?</table>", html_made)
    assert table.count("<tr>") == 1 + len(audit_events.SENTENCES)
    for words in ("12 March 2024 was a Tuesday.", "98%", "Reconsidered, unclear → hallucinated"):
        assert words in html.unescape(table)
    assert not re.search(r"(src|href)\s*=|@import|url\(", html_made)
    markdown = write_markdown(build_report(RUN, audit_events.CASE, made, [], CARD))
    row = next(line for line in markdown.splitlines() if line.startswith("| 2 |"))
    assert "a **Monday**." in row
    assert "**Hallucinated**, 98%" in row
    assert "search: failed: No answer within 10 s." in markdown
    assert "conditions: hallucinated: 20 words were asked for" in markdown
    for sentence in audit_events.SENTENCES:
        plain = re.sub(r"[*\\]", "", markdown)
        assert plain.count(f"| {sentence} |") == 1, "no statement twice"


def test_a_report_of_a_debate_has_no_table_of_statements() -> None:
    assert "Nothing to check" not in write_html(build_report(RUN, CASE, progress(), SAID, CARD))
    assert "| Statement |" not in write_markdown(build_report(RUN, CASE, progress(), SAID, CARD))


def test_only_what_a_source_says_is_called_what_the_evidence_says() -> None:
    read, worked_out = SPAN, replace(SPAN, instead="Sunday", quote=None)
    lost = replace(SPAN, quote=replace(QUOTE, status="not_found"))
    for span, words in (
        (read, "the evidence says “412 m”"),
        (worked_out, "it should say “Sunday”"),
        (lost, "it should say “412 m”"),
    ):
        (mark,) = build_span_marks((span,))
        assert words in mark.title
    told = fold_events([*EVENTS[:-2], SpanAdjudicated(104.0, worked_out, True, "")])
    report = write_markdown(build_report(RUN, CASE, told, [], None))
    assert "| **Sunday** |  |" in report, "it should say so, though no source does"


def test_where_nobody_argued_both_reports_say_why() -> None:
    told = replace(RUN, plan=Plan("adaptive", classifier="seed"))
    made = RunState(plan=told.plan)
    made.add(DebateDecided(101.0, False, "The single judge was sure.", "ceda"))
    for event in EVENTS[-4:]:
        made.add(event)
    for write in (write_html, write_markdown):
        assert "The single judge was sure." in write(build_report(told, CASE, made, [], CARD))


def long_debate() -> RunState:
    made = progress()
    made.turns = [
        replace(TURNS[n % 2], number=n + 1, round=n // 4 + 1, text=f"DENY. Said {n}.", quotes=())
        for n in range(16)
    ]
    return made


def test_a_long_debate_is_folded_by_rounds_with_links_that_unfold_them() -> None:
    made = write_html(build_report(RUN, CASE, long_debate(), [], CARD))
    assert made.count('<details class="cp-round">') == 3
    assert made.count("Said ") == 16
    links = re.findall(r'<a href="(.*?)">(.*?)</a>', made)
    assert [words for _, words in links] == [f"Round {n}" for n in range(1, 5)]
    assert all(made.count(f'id="{place[1:]}"') == 1 for place, _ in links)
    assert '"cp-round"' not in write_html(build_report(RUN, CASE, progress(), SAID, CARD))


RIGHT = CASE.response.replace("512", "412")


def revised(text: str) -> RunState:
    made = progress()
    made.add(ResponseRevised(109.7, "Writer <b>", text))
    return made


@pytest.mark.parametrize("by", ["Writer <b>", MARKED_VALUES_AUTHOR])
def test_reports_tell_what_goes_and_what_comes_and_by_whom(by: str) -> None:
    made = revised(RIGHT) if by != MARKED_VALUES_AUTHOR else progress()
    assert propose_correction(CASE, made) == (RIGHT, by)
    html = write_html(build_report(RUN, CASE, made, [], None))
    assert html.index("Corrected text") < html.index("<del>512</del><ins>412</ins>")
    assert "<b>" not in html
    text = write_markdown(build_report(RUN, CASE, made, [], None))
    assert text.index("## Corrected text") < text.index("~~512~~**412**")
    assert f"Proposed by {by}.".replace("<b>", r"\<b\>") in text


def test_what_it_leaves_contested_is_told() -> None:
    other = replace(SPAN, start=4, end=9, text="tower")
    made = revised(RIGHT)
    made.rulings.append(replace(made.rulings[0], span=other))
    for write in (write_html, write_markdown):
        assert "Unchanged, though contested: “tower”." in write(
            build_report(RUN, CASE, made, [], None)
        )


def test_nothing_is_told_where_nothing_would_change() -> None:
    for made in (revised(CASE.response), RunState()):
        assert propose_correction(CASE, made) == ("", "")
        for write in (write_html, write_markdown):
            assert "Corrected text" not in write(build_report(RUN, CASE, made, [], None))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("The tower is 512 m tall.", "The-tower-is-512-m-tall-1970-01-02.pdf"),
        ("../../etc/passwd\x00\n", "etc-passwd-1970-01-02.pdf"),
        ("يبلغ طول الجسر ٥١٢ مترًا", "يبلغ-طول-الجسر-٥١٢-مترًا-1970-01-02.pdf"),
        ("मीनार की ऊँचाई", "मीनार-की-ऊँचाई-1970-01-02.pdf"),
        ("哈尔登大桥全长512米。", "哈尔登大桥全长512米-1970-01-02.pdf"),
        ("word " * 40, "word" + "-word" * 9 + "-1970-01-02.pdf"),
        ("?!", "counterpoint-1970-01-02.pdf"),
    ],
)
def test_a_file_is_called_after_what_it_holds(name: str, expected: str) -> None:
    assert make_file_name(name, 90_000.0, "pdf") == expected


def test_many_changes_are_counted_in_the_line() -> None:
    assert summarize_changes("a b c", "a x c") == "“b” → “x”"
    assert summarize_changes("a b c", "a c") == "taken out: “b”"
    spans = (replace(SPAN, start=0, end=1, text="a"), replace(SPAN, start=2, end=3, text="b"))
    assert (
        summarize_changes("a b c", "a x c", spans)
        == "“b” → “x” · 1 of 2 contested places left unchanged"
    )
    assert summarize_changes("a b", "a\nb") == "other spaces"
    before = " ".join(f"{n} word" for n in range(40))
    assert summarize_changes(before, before.replace("word", "text")) == "40 changes"


@given(st.text(max_size=60), st.text(max_size=60))
def test_every_change_has_a_line_and_the_line_is_short(before: str, after: str) -> None:
    differ = [(gone, come) for gone, come in iter_changes(before, after) if gone != come]
    assert len(describe_changes(before, after)) == len(differ)
    assert len(summarize_changes(before, after)) <= MAX_SUMMARY_CHARS
