"""What the built-in roster sees: each kind of contrast, in several languages, and what it is not.

Every text and claim is of our own writing.
"""

from __future__ import annotations

import pytest

from tests.builtin.debates import check

BRIDGE = (
    "The Halden Bridge is 412 m long and 18 m wide. It was opened to traffic on 14 May 1932. "
    "Its two towers are 61 m high. Tolls were abolished in 1971. About 9,400 vehicles cross it "
    "on a working day."
)
CATS = (
    "Cats have five toes on each front paw, but only four toes on each back paw. Female cats tend "
    "to be right pawed, while male cats are more often left pawed. A female cat is called a queen."
)
TOWN = (
    "Sandvik is a port in the north of the country. Most of its houses are built of wood. "
    "Anna Berg has been its mayor since 2015; before her, Karl Holm held the office. "
    "The library is not open on Sundays. Only members may borrow films. "
    "Lake Tove is the second-largest lake of the region. "
    "The keeper Olga Strand lived on the island until 1956."
)

CONTRADICTED = [
    # numbers and units
    (BRIDGE, "The Halden Bridge is 512 m long.", "512 m", "412 m"),
    (BRIDGE, "The Halden Bridge is 0.5 km long.", "0.5 km", "412 m"),
    (BRIDGE, "The Halden Bridge has three towers.", "three", "two"),
    (BRIDGE, "Some 19,400 vehicles cross the bridge on a working day.", "19,400", "9,400"),
    (CATS, "Cats have six toes on each front paw.", "six", "five"),
    # dates
    (BRIDGE, "The Halden Bridge was opened to traffic in 1942.", "1942", "14 May 1932"),
    (BRIDGE, "The bridge was opened to traffic on 15 May 1932.", "15 May 1932", "14 May 1932"),
    (BRIDGE, "Tolls on the bridge were abolished in 1981.", "1981", "1971"),
    # names
    (TOWN, "Maria Lund has been mayor of Sandvik since 2015.", "Maria Lund", "Anna Berg"),
    (TOWN, "Anna Berg has been mayor of Sandvik since 2012.", "2012", "2015"),
    (TOWN, "The keeper Maria Lund lived on the island until 1956.", "Maria Lund", "Olga Strand"),
    (TOWN, "Maria Lund lived on the island until 1956.", "Maria Lund", "Olga Strand"),
    # opposites
    (CATS, "Female cats tend to be left pawed.", "left", "right"),
    (BRIDGE, "The bridge was closed to traffic on 14 May 1932.", "closed", "opened"),
    (TOWN, "Sandvik is a port in the south of the country.", "south", "north"),
    # families of exclusive words
    (TOWN, "Most houses of Sandvik are built of stone.", "stone", "wood"),
    # negation
    (TOWN, "The library is open on Sundays.", "open", "not open"),
    (CATS, "Female cats do not tend to be right pawed.", "not", ""),
    # quantifiers
    (TOWN, "All houses of Sandvik are built of wood.", "All", "Most"),
    # ranks and superlatives
    (TOWN, "Lake Tove is the largest lake of the region.", "largest", "second largest"),
]


@pytest.mark.parametrize(("text", "claim", "wrong", "instead"), CONTRADICTED)
def test_a_contrast_is_named_with_the_evidences_own_value(
    text: str, claim: str, wrong: str, instead: str
) -> None:
    outcome = check(claim, text)
    assert outcome.judgement.label == "hallucinated", outcome.judgement.text
    assert wrong in outcome.wrong
    assert instead in outcome.instead[outcome.wrong.index(wrong)]
    assert all(claim[s.start : s.end] == s.text for s in outcome.spans)


SUPPORTED = [
    (BRIDGE, "The Halden Bridge is 412 metres long."),
    (BRIDGE, "The Halden Bridge is 0.412 km long."),
    (BRIDGE, "The Halden Bridge is about 400 m long."),
    (BRIDGE, "The Halden Bridge is more than 400 m long."),
    (BRIDGE, "The bridge was opened to traffic in 1932."),
    (BRIDGE, "The bridge was opened to traffic in May 1932."),
    (BRIDGE, "The towers are 61 metres high."),
    (BRIDGE, "The Halden Bridge is 412 m long and was opened to traffic in 1932."),
    (CATS, "Female cats tend to be right pawed."),
    (CATS, "Cats have four toes on each back paw."),
    (CATS, "A female cat is called a queen."),
    (TOWN, "Anna Berg has been mayor of Sandvik since 2015."),
    (TOWN, "The library is not open on Sundays."),
    (TOWN, "Most houses of Sandvik are built of wood."),
    (TOWN, "Sandvik is a port in the north of the country."),
]


@pytest.mark.parametrize(("text", "claim"), SUPPORTED)
def test_what_the_evidence_says_is_supported(text: str, claim: str) -> None:
    outcome = check(claim, text)
    assert outcome.judgement.label == "supported", outcome.judgement.text
    assert outcome.wrong == []


OTHER_LANGUAGES = [
    ("zh", "云溪茶园建于1962年。这里主要种植绿茶。占地约800亩。", "云溪茶园建于1972年。", "1972年"),
    ("zh", "云溪茶园建于1962年。这里主要种植绿茶。占地约800亩。", "这里主要种植红茶。", "红"),
    ("de", "Die Brücke ist 412 m lang. Sie wurde am 3. Mai 1999 eröffnet.",
     "Die Brücke wurde am 3. Mai 1989 eröffnet.", "3. Mai 1989"),
    ("fr", "La tour mesure 1 234 m. Elle est ouverte le dimanche.",
     "La tour mesure 2 234 m.", "2 234 m"),
    ("es", "El museo está abierto los lunes. Fue fundado en 1894.",
     "El museo fue fundado en 1904.", "1904"),
    ("ar", "يبلغ طول الجسر ٤١٢ مترا. افتتح الجسر عام ١٩٣٢.",
     "يبلغ طول الجسر ٥١٢ مترا.", "٥١٢ مترا"),
    ("hi", "पुल 412 मीटर लंबा है। यह 1932 में खुला।", "पुल 512 मीटर लंबा है।", "512"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "claim", "wrong"), OTHER_LANGUAGES)
def test_values_are_compared_in_other_languages(
    language: str, text: str, claim: str, wrong: str
) -> None:
    outcome = check(claim, text, language=language)
    assert outcome.judgement.label == "hallucinated", outcome.judgement.text
    assert any(wrong in marked for marked in outcome.wrong), outcome.wrong
    assert all(claim[s.start : s.end] == s.text for s in outcome.spans)


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("The three plants together employ 1,260 people.", "supported"),
        ("The three plants together employ 1,240 people.", "hallucinated"),
    ],
)
def test_a_sum_is_worked_out_from_the_rows(claim: str, label: str) -> None:
    rows = (
        "Plant: Arvika; Country: Sweden; Employees: 420\n"
        "Plant: Lahti; Country: Finland; Employees: 510\n"
        "Plant: Tartu; Country: Estonia; Employees: 330"
    )
    outcome = check(claim, rows, kind="table")
    assert outcome.judgement.label == label, outcome.judgement.text
    said = " ".join([outcome.judgement.text, *(turn.text for turn in outcome.turns)])
    assert "420 + 510 + 330 = 1,260" in said


def test_a_sum_in_one_sentence_is_worked_out() -> None:
    text = "The firm employs 420 people in Arvika, 510 people in Lahti and 330 people in Tartu."
    outcome = check("In total the firm employs 1,300 people.", text)
    assert outcome.judgement.label == "hallucinated"
    assert outcome.wrong == ["1,300"] or "1,300 people" in outcome.wrong


def test_a_bar_of_a_chart_is_read_with_its_heading() -> None:
    chart = "Visitors by region, 2023 (thousands)\nNorth: 412\nSouth: 287\nEast: 355\nWest: 198"
    wrong = check("The South region had 412 thousand visitors in 2023.", chart, kind="image")
    assert wrong.judgement.label == "hallucinated"
    assert "412 thousand" in wrong.wrong
    assert "287" in wrong.instead[wrong.wrong.index("412 thousand")]
    right = check("The South region had 287 thousand visitors in 2023.", chart, kind="image")
    assert right.judgement.label == "supported", right.judgement.text


QUESTIONS = [
    ("What is the capital of Australia?", "Sydney", "hallucinated"),
    ("What is the capital of Australia?", "Canberra", "supported"),
    ("Is the tower 512 m tall?", "Yes", "hallucinated"),
    ("Is the tower 512 m tall?", "No", "supported"),
    ("Is the tower 412 m tall?", "Yes.", "supported"),
    ("Is the tower 412 m tall?", "No.", "hallucinated"),
    ("How tall is the tower?", "512 m", "hallucinated"),
    ("How tall is the tower?", "412 m", "supported"),
]


@pytest.mark.parametrize(("question", "answer", "label"), QUESTIONS)
def test_a_short_answer_is_read_with_its_question(question: str, answer: str, label: str) -> None:
    text = (
        "Canberra is the capital of Australia. Sydney is its largest city. The tower is 412 m tall."
    )
    outcome = check(answer, text, question=question)
    assert outcome.judgement.label == label, outcome.judgement.text
    for span in outcome.spans:
        assert answer[span.start : span.end] == span.text


def test_what_the_sources_do_not_speak_of_is_unclear() -> None:
    outcome = check("Dogs are loyal to the people who feed them.", BRIDGE)
    assert (outcome.judgement.label, outcome.judgement.cause) == ("unclear", "not_addressed")
    assert outcome.wrong == []


def test_without_evidence_nobody_guesses() -> None:
    outcome = check("Paris is the capital of France.")
    assert (outcome.judgement.label, outcome.judgement.cause) == ("unclear", "no_evidence")


def test_sources_that_contradict_each_other_are_said_to() -> None:
    other = "The Halden Bridge is 512 m long and 18 m wide."
    outcome = check("The Halden Bridge is 512 m long.", BRIDGE, other)
    assert (outcome.judgement.label, outcome.judgement.cause) == ("unclear", "sources_disagree")
    assert "412 m" in outcome.judgement.cause_words


def test_an_invented_detail_is_not_in_the_source() -> None:
    outcome = check("The Halden Bridge was opened to traffic by Queen Astrid in 1932.", BRIDGE)
    assert outcome.judgement.label == "hallucinated"
    assert "Queen Astrid" in outcome.wrong


def test_a_long_response_is_wrong_where_one_statement_is() -> None:
    response = (
        "The Halden Bridge is 412 m long. It was opened to traffic in 1932. "
        "Its two towers are 91 m high. Tolls were abolished in 1971."
    )
    outcome = check(response, BRIDGE)
    assert outcome.judgement.label == "hallucinated"
    assert outcome.judgement.statement_labels.count("hallucinated") == 1
    assert outcome.judgement.statement_labels[2] == "hallucinated"
    assert outcome.wrong == ["91 m"]


@pytest.mark.parametrize("text", ["", "   ", "Hello!", "👋", "🙂🙂", "…"])
def test_a_text_that_says_nothing_is_unclear(text: str) -> None:
    assert check(text, BRIDGE).judgement.label == "unclear"


DISAGREEING = [
    ("The Orsa pipeline is 87 km long.", "The Orsa pipeline is 97 km long."),
    ("The Orsa pipeline is 87 km long.", "The Orsa pipeline measures 97 km."),
]


@pytest.mark.parametrize("texts", DISAGREEING)
def test_sources_that_disagree_leave_it_open(texts: tuple[str, str]) -> None:
    """Whichever comes first, and however much alike they look."""
    for pair in (texts, texts[::-1]):
        outcome = check("The Orsa pipeline is 97 km long.", *pair)
        assert outcome.judgement.cause == "sources_disagree", outcome.judgement.text
        assert outcome.spans == ()


def test_sources_that_disagree_on_one_clause_of_several_are_named() -> None:
    one = "The Orsa pipeline was completed in 2019 and is 97 km long."
    other = "The Orsa pipeline was completed in 2020."
    outcome = check(one, one.replace("97", "87"), other)
    assert outcome.judgement.label != "supported"


def test_a_chinese_name_that_is_missing_is_one_mark() -> None:
    text = "云溪大桥由工程师李文华设计。大桥于1998年通车。"
    outcome = check("云溪大桥由工程师王建国设计。", text, language="zh")
    assert outcome.judgement.label == "hallucinated", outcome.judgement.text
    assert outcome.wrong == ["王建国"]


SUBJECTS = (
    "Alice lives in London. Bob lives in Berlin. Brutus killed Caesar. Google acquired YouTube in "
    "2006. The bridge was built in 1932."
)


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("Bob lives in Berlin.", "supported"),
        ("Alice lives in Berlin.", "hallucinated"),
        ("Caesar killed Brutus.", "hallucinated"),
        ("Caesar was killed by Brutus.", "supported"),
        ("YouTube acquired Google in 2006.", "hallucinated"),
        ("The church was built in 1880.", "unclear"),
    ],
)
def test_what_is_said_of_one_is_not_said_of_another(claim: str, label: str) -> None:
    outcome = check(claim, SUBJECTS)
    assert outcome.judgement.label == label, outcome.judgement.text


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("The door is open.", "The door is not closed."),
        ("Smoking is prohibited in the building.", "Smoking is not allowed in the building."),
        ("The medicine is not safe for children.", "The medicine is unsafe for children."),
    ],
)
def test_a_denied_opposite_is_no_contradiction(text: str, claim: str) -> None:
    assert check(claim, text).judgement.label != "hallucinated"
