"""Plain sentences that every reader gets right: two facts in one sentence, denials, roles, sums.

Every text and claim is of our own writing. Where two labels are sound, either passes.
"""

from __future__ import annotations

import pytest

from tests.builtin.debates import check

S, H, U = "supported", "hallucinated", "unclear"

Row = tuple[str, tuple[str, ...]]
CLAIMS: dict[str, list[Row]] = {
    "The train leaves at 10:15 and arrives at 12:40.": [
        ("The train arrives at 10:15.", (H,)),
        ("The train arrives at 12:40.", (S,)),
        ("The train leaves at 10:15.", (S,)),
    ],
    "Mozart was born in Salzburg and died in Vienna.": [
        ("Mozart was born in Vienna.", (H,)),
        ("Mozart died in Vienna.", (S,)),
        ("Mozart was born in Salzburg.", (S,)),
    ],
    "Sales in Europe were 40 million and sales in Asia were 30 million.": [
        ("Sales in Asia were 40 million.", (H,)),
        ("Sales in Asia were 30 million.", (S,)),
    ],
    "Sales were 40 million in Europe and 30 million in Asia.": [
        ("Sales in Asia were 40 million.", (H,)),
        ("Sales in Europe were 40 million.", (S,)),
        ("Sales in Asia were 30 million.", (S,)),
    ],
    "The firm employs 120 people in Oslo, 80 in Bergen and 40 in Moss.": [
        ("The firm employs 80 people in Bergen.", (S,)),
        ("The firm employs 40 people in Oslo.", (H,)),
    ],
    "The members are Anna, Bob and Carol.": [
        ("Carol is a member.", (S, U)),
        ("The members include Carol.", (S, U)),
    ],
    "He visited Paris in 1920 and Rome in 1921.": [
        ("He visited Rome in 1921.", (S,)),
        ("He visited Rome in 1920.", (H,)),
        ("He visited Rome.", (S,)),
    ],
    "Neither Tom nor Anna passed the exam.": [
        ("Tom passed the exam.", (H,)),
        ("Tom did not pass the exam.", (S,)),
    ],
    "Everyone except Tom passed the exam.": [
        ("Tom passed the exam.", (H,)),
        ("Tom did not pass the exam.", (S, U)),
    ],
    "Only members may enter the hall.": [
        ("Everyone may enter the hall.", (H,)),
        ("Members may enter the hall.", (S,)),
    ],
    "The cake contains flour, sugar and eggs.": [
        ("The cake contains no eggs.", (H,)),
        ("The cake contains eggs.", (S,)),
    ],
    "The cake contains no eggs.": [
        ("The cake contains eggs.", (H,)),
    ],
    "If it rains, the match is cancelled.": [
        ("The match is cancelled.", (U, H)),
        ("The match is cancelled if it rains.", (S,)),
    ],
    "The teacher praised the student.": [
        ("The student praised the teacher.", (H,)),
        ("The teacher praised the student.", (S,)),
        ("The student was praised by the teacher.", (S,)),
    ],
    "Brutus killed Caesar.": [
        ("Brutus was killed by Caesar.", (H,)),
        ("Caesar was killed by Brutus.", (S,)),
        ("Caesar killed Brutus.", (H,)),
    ],
    "Caesar was killed by Brutus.": [
        ("Brutus killed Caesar.", (S,)),
        ("Caesar killed Brutus.", (H,)),
    ],
    "Anna is a doctor. Bob is a lawyer.": [
        ("Bob is a doctor.", (H,)),
        ("Bob is a lawyer.", (S,)),
        ("Carol is a doctor.", (U, H)),
    ],
    "Anna lives in Berlin. Bob lives in Paris.": [
        ("Carol lives in Berlin.", (U, H)),
        ("Bob lives in Berlin.", (H,)),
        ("Anna lives in Berlin.", (S,)),
    ],
    "Paris is the largest city in France.": [
        ("Lyon is the largest city in France.", (H,)),
        ("Paris is the largest city in France.", (S,)),
    ],
    "The cat is on the table.": [
        ("The cat is under the table.", (H,)),
        ("The cat is on the table.", (S,)),
    ],
    "The bridge is 412 m long.": [
        ("The bridge is not 600 m long.", (S,)),
        ("The bridge is not 412 m long.", (H,)),
    ],
    "The Eiffel Tower is in Paris. It was designed by Gustave Eiffel.": [
        ("The Louvre is in Paris.", (U, H)),
        ("The Louvre was designed by Gustave Eiffel.", (U, H)),
        ("The Eiffel Tower was designed by Gustave Eiffel.", (S,)),
        ("The Eiffel Tower is in London.", (H,)),
    ],
    "Revenue rose from 10 million to 13 million.": [
        ("Revenue rose by 3 million.", (S,)),
        ("Revenue rose by 5 million.", (H,)),
        ("Revenue rose to 13 million.", (S,)),
        ("Revenue rose to 10 million.", (H,)),
    ],
    "The war began in 1914 and ended in 1918.": [
        ("The war ended in 1914.", (H,)),
        ("The war ended in 1918.", (S,)),
        ("The war lasted four years.", (S, U)),
    ],
    "The study included 12 men and 8 women.": [
        ("The study included 12 women.", (H,)),
        ("The study included 8 women.", (S,)),
        ("The study included 20 people.", (S, U)),
    ],
    "The committee rejected the proposal.": [
        ("The committee approved the proposal.", (H,)),
    ],
    "The drug was ineffective.": [
        ("The drug was effective.", (H,)),
    ],
    "The hall holds up to 300 people.": [
        ("The hall holds at least 300 people.", (H,)),
        ("The hall holds at most 300 people.", (S,)),
    ],
    "The museum is free for children.": [
        ("The museum is free for adults.", (H,)),
    ],
    "Anna is younger than Bob.": [
        ("Anna is older than Bob.", (H,)),
        ("Bob is older than Anna.", (S,)),
        ("Bob is younger than Anna.", (H,)),
        ("Anna is younger than Bob.", (S,)),
    ],
    "The device may cause interference.": [
        ("The device causes interference.", (U, H)),
        ("The device may cause interference.", (S,)),
    ],
    "The museum opens at 9 on weekdays and at 11 on Sundays.": [
        ("The museum opens at 9 on Sundays.", (H,)),
        ("The museum opens at 11 on Sundays.", (S,)),
    ],
    "The company was founded in 1998 by Lena Holt and moved to Oslo in 2005.": [
        ("The company moved to Oslo in 1998.", (H,)),
        ("The company moved to Oslo in 2005.", (S,)),
        ("Lena Holt founded the company in 1998.", (S,)),
        ("The company was founded in 2005.", (H,)),
    ],
    "Oslo is the capital of Norway, and Stockholm is the capital of Sweden.": [
        ("Oslo is the capital of Sweden.", (H,)),
        ("Stockholm is the capital of Sweden.", (S,)),
        ("The capital of Norway is Oslo.", (S,)),
    ],
    "Tom gave the book to Mary.": [
        ("Mary gave the book to Tom.", (H,)),
        ("Tom gave Mary the book.", (S,)),
        ("Mary got the book from Tom.", (S, U)),
    ],
    "The shop is closed on Mondays.": [
        ("The shop is open on Mondays.", (H,)),
        ("The shop is closed on Tuesdays.", (H,)),
        ("The shop is not open on Mondays.", (S,)),
    ],
    "No student failed the test.": [
        ("All students passed the test.", (S, U)),
        ("Some students failed the test.", (H,)),
    ],
    "Some students failed the test.": [
        ("All students failed the test.", (H,)),
    ],
    "Most members voted yes.": [
        ("All members voted yes.", (H,)),
    ],
    "The film was released in May 2011 in Canada and in June 2011 in Japan.": [
        ("The film was released in Japan in May 2011.", (H,)),
        ("The film was released in Japan in June 2011.", (S,)),
    ],
    "The red car belongs to Eva and the blue car belongs to Max.": [
        ("The blue car belongs to Eva.", (H,)),
        ("The blue car belongs to Max.", (S,)),
    ],
    "The patient was given 5 mg of aspirin and 10 mg of ibuprofen.": [
        ("The patient was given 10 mg of aspirin.", (H,)),
        ("The patient was given 10 mg of ibuprofen.", (S,)),
    ],
    "The contract runs until 2027 and can be extended by two years.": [
        ("The contract runs until 2027.", (S,)),
        ("The contract can be extended by five years.", (H,)),
    ],
    "Water boils at 100 °C at sea level.": [
        ("Water boils at 90 °C at sea level.", (H,)),
    ],
    "Maria, who was born in Lima, moved to Madrid in 1999.": [
        ("Maria was born in Madrid.", (H,)),
        ("Maria was born in Lima.", (S,)),
        ("Maria moved to Madrid in 1999.", (S,)),
    ],
    "The population grew from 2,000 in 1950 to 5,000 in 2000.": [
        ("The population was 5,000 in 2000.", (S,)),
        ("The population was 5,000 in 1950.", (H,)),
    ],
    "Unlike its rival, the X2 has no headphone jack.": [
        ("The X2 has a headphone jack.", (H,)),
        ("The X2 has no headphone jack.", (S,)),
    ],
    "Employees are entitled to 25 days of leave. Contractors are entitled to no paid leave.": [
        ("Contractors are entitled to 25 days of leave.", (H,)),
        ("Employees are entitled to 25 days of leave.", (S,)),
    ],
    "The lake is 30 m deep. The river is 4 m deep.": [
        ("The river is 30 m deep.", (H,)),
        ("The lake is 30 m deep.", (S,)),
    ],
    "Alice sold the house to Bob in 2010.": [
        ("Bob bought the house in 2010.", (S, U)),
        ("Alice sold the house in 2010.", (S,)),
    ],
    "Penguins cannot fly but they swim well.": [
        ("Penguins can fly.", (H,)),
        ("Penguins swim well.", (S,)),
        ("Penguins cannot swim.", (H,)),
    ],
    "The treaty was signed by France and Germany but not by Italy.": [
        ("Italy signed the treaty.", (H,)),
        ("France signed the treaty.", (S,)),
        ("Italy did not sign the treaty.", (S,)),
    ],
    "The car has four doors, two airbags and a sunroof.": [
        ("The car has four airbags.", (H,)),
        ("The car has two airbags.", (S,)),
        ("The car has a sunroof.", (S,)),
    ],
    "Tom likes tea but Anna does not like tea.": [
        ("Tom likes tea but Anna does not like tea.", (S,)),
        ("Anna does not like tea.", (S,)),
        ("Anna likes tea.", (H,)),
        ("Tom likes tea.", (S,)),
    ],
    "The north gate is open and the south gate is not open.": [
        ("The north gate is open and the south gate is not open.", (S,)),
        ("The south gate is open.", (H,)),
    ],
    "There was no water and no food, but there was shelter.": [
        ("There was no water and no food, but there was shelter.", (S,)),
    ],
    "The school was founded on 3 May 1950 and closed in 1990.": [
        ("The school closed in 1990.", (S,)),
    ],
    "Nobody was hurt in the fire, which destroyed two houses.": [
        ("The fire destroyed two houses.", (S,)),
    ],
    "There is no doubt that the treaty ended the war.": [("The treaty ended the war.", (S,))],
    "The queen reigned from 1837 to 1901.": [("The queen reigned for 64 years.", (S,))],
    "The price fell from 80 to 60 euros.": [("The price fell by 25 percent.", (S,))],
}


@pytest.mark.parametrize(
    ("text", "claim", "labels"),
    [(text, claim, labels) for text, claims in CLAIMS.items() for claim, labels in claims],
)
def test_a_plain_claim_is_judged_rightly(text: str, claim: str, labels: tuple[str, ...]) -> None:
    outcome = check(claim, text)
    assert outcome.judgement.label in labels, outcome.judgement.text
    assert all(claim[span.start : span.end] == span.text for span in outcome.spans)


ANSWERS = [
    ("The tower was finished in 1889 and is 330 m tall.", "How tall is the tower?", "1889", (H,)),
    ("The tower was finished in 1889 and is 330 m tall.", "How tall is the tower?", "330 m", (S,)),
    (
        "The tower was finished in 1889 and is 330 m tall.",
        "When was the tower finished?",
        "1889",
        S,
    ),
    (
        "The tower was finished in 1889 and is 330 m tall.",
        "When was the tower finished?",
        "I don't know.",
        U,
    ),
    ("Anna Berg wrote the book in 1999.", "Who wrote the book?", "Anna Berg", (S,)),
    ("Anna Berg wrote the book in 1999.", "Who wrote the book?", "Karl Holm", (H,)),
    ("Anna Berg wrote the book in 1999.", "Who wrote the book?", "1999", (H, U)),
    ("Anna Berg wrote the book in 1999.", "Did Anna Berg write the book?", "Yes.", (S,)),
    ("Anna Berg wrote the book in 1999.", "Did Anna Berg write the book?", "No.", (H,)),
    ("Anna Berg wrote the book in 1999.", "Did Karl Holm write the book?", "Yes.", (H, U)),
    ("Anna Berg wrote the book in 1999.", "Where was the book written?", "Oslo", (H, U)),
]


@pytest.mark.parametrize(("text", "question", "answer", "labels"), ANSWERS)
def test_a_plain_answer_is_judged_rightly(
    text: str, question: str, answer: str, labels: tuple[str, ...]
) -> None:
    outcome = check(answer, text, question=question)
    assert outcome.judgement.label in labels, outcome.judgement.text


@pytest.mark.parametrize("question", ["¡!", "…", "😀"])
def test_a_question_without_words_breaks_nothing(question: str) -> None:
    outcome = check("Sí.", "El museo está abierto.", question=question, language="es")
    assert outcome.judgement.label in ("unclear", "supported", "hallucinated")


def test_what_the_evidence_says_is_quoted_in_its_own_words() -> None:
    text = "The farm has fewer than 60 cows. The cat is on the old table."
    outcome = check("The farm has 90 cows. The cat is under the old table.", text)
    assert outcome.instead == ["fewer than 60", "on"]


def test_words_of_another_statement_that_one_debater_missed_are_not_marked() -> None:
    text = (
        "The harbour handled 412,000 tonnes of cargo in 2018. It employs 86 people. "
        "Its crane was bought in 1999. Ships wait a day. The harbour has two docks."
    )
    said = "The harbour handled 421,000 tonnes of cargo in 2018 and employs 86 people."
    assert check(said, text).wrong == ["421,000 tonnes"]
