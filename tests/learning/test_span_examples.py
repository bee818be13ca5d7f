"""Which corrected cases become examples, and what people may do about them."""

from __future__ import annotations

from typing import Any

import pytest

from core.learning.span_tuning import (
    ExampleCandidate,
    build_examples_body,
    decide_example,
    list_example_candidates,
    load_span_answers,
    select_examples,
    store_and_use,
    use_earlier,
)
from core.runtime.errors import InputError, NotAllowed
from core.schema.records import (
    EXAMPLES_KIND,
    MAX_EXAMPLE_TOKENS,
    MAX_PROMPT_EXAMPLES,
    THRESHOLD_KIND,
    Member,
    SpanExample,
    choose_examples,
    parse_examples,
    parse_thresholds,
)
from core.store import Store
from core.store.versions import NOTHING_LEARNED, ArtefactChoice, LearnedArtefact
from tests.learning.marked import PROJECT, WORDS, add_case, add_run, say, span


def taught(
    store: Store, name: str, wrong: int, machine: int, *, category: str = "wrong_entity",
    **changes: Any,
) -> None:  # fmt: skip
    """A case in which the machine marked one word and a person another one, or the same."""
    case = add_case(store, name, **changes)
    add_run(store, case, rulings=[(span(machine), True)])
    say(store, case, span(wrong, category=category), sure=0.9)


def found_in(store: Store) -> list[ExampleCandidate]:
    return list_example_candidates(load_span_answers(store, PROJECT.id))


def lead(store: Store) -> None:
    """Lea may say what people's marks change."""
    if store.projects.get(PROJECT.id) is None:
        store.projects.save(PROJECT)
    store.projects.set_member(Member(PROJECT.id, "Lea", "lead", 1.0))


def use_examples(store: Store) -> int:
    lead(store)
    body = build_examples_body(select_examples(found_in(store)))
    with store.writing():
        return store_and_use(
            store, LearnedArtefact(EXAMPLES_KIND, PROJECT.id, 5.0, "Lea", body), "good ones"
        )


def in_use(store: Store) -> list[str]:
    current = store.learned.in_use(EXAMPLES_KIND, PROJECT.id)
    assert current
    return [one.case_id for one in parse_examples(current.body)]


def id_of(store: Store, name: str) -> str:
    return next(one.id for one in found_in(store) if one.answer.case.id == name)


def test_the_more_wrong_the_machine_was_the_more_a_case_teaches(store: Store) -> None:
    taught(store, "apart", 0, 3)
    taught(store, "right", 1, 1)
    case = add_case(store, "half")
    add_run(store, case, rulings=[(span(0), True)])
    say(store, case, span(0), span(1), sure=0.9)
    assert [(c.answer.case.id, c.iou) for c in found_in(store)] == [("apart", 0.0), ("half", 0.5)]


def test_what_is_unsure_unmarked_or_too_long_teaches_nothing(store: Store) -> None:
    for name, marks, sure in (
        ("unsure", [span(2)], 0.2),
        ("nothing", [], None),
        ("one person's, who did not say how sure", [span(2)], None),
        ("one person's guess", [span(2)], 0.5),
    ):
        case = add_case(store, name)
        add_run(store, case, rulings=[(span(0), True)])
        say(store, case, *marks, sure=sure)
    taught(store, "long", 0, 3, response=f"{WORDS} {'and so on ' * 900}")
    assert found_in(store) == []


def test_a_clear_short_answer_comes_first(store: Store) -> None:
    taught(store, "long", 0, 3, response=f"{WORDS} {'and so on ' * 100}")
    taught(store, "short", 0, 3)
    assert [c.answer.case.id for c in found_in(store)] == ["short", "long"]


def test_examples_are_unlike_each_other_and_at_most_four_of_a_language(store: Store) -> None:
    for n in range(5):
        taught(store, f"same{n}", 0, 3)
    taught(store, "other", 0, 3, category="number_or_date", response=f"{WORDS} and so on")
    taught(store, "deutsch", 0, 3, language="de")
    names = [one.answer.case.id for one in select_examples(found_in(store))]
    assert len(names) == 5
    assert {"deutsch", "other"} <= set(names), "longer, but of another kind"


def test_near_copies_wait_for_what_reads_otherwise(store: Store) -> None:
    for n in range(4):
        taught(store, f"copy{n}", 0, 3, response=f"{WORDS} and no more {n}")
    taught(store, "longer", 0, 3, response=f"{WORDS} while winter ferries run but twice a day")
    names = [one.answer.case.id for one in select_examples(found_in(store))]
    assert names[1] == "longer", "though longer, and of the same category"
    assert len(names) == 4, "copies fill what is left"


def test_one_question_gives_one_example(store: Store) -> None:
    for name in "ab":
        taught(store, name, 0, 3, question="Who was it?", response=f"{WORDS} {name}")
    assert len(select_examples(found_in(store))) == 1


def test_removed_ones_stay_out_and_pinned_ones_stay_in(store: Store) -> None:
    for n in range(6):
        taught(store, f"c{n}", 0, 3)
    known = found_in(store)
    first, last = known[0].id, known[-1].id
    names = [one.id for one in select_examples(known, pinned=[last], removed=[first])]
    assert names[0] == last
    assert first not in names
    assert len(names) == 4


def test_a_person_removes_pins_and_allows_again(store: Store) -> None:
    for n in range(3):
        taught(store, f"c{n}", 0, 3)
    number = use_examples(store)
    first, second, third = in_use(store)

    def say_so(name: str, decision: str) -> list[str]:
        with store.writing():
            decide_example(store, PROJECT.id, id_of(store, name), decision, by="Lea", now=6.0)  # type: ignore[arg-type]
        return in_use(store)

    assert say_so(first, "remove") == [second, third]
    assert say_so(third, "pin") == [third, second]
    assert say_so(first, "allow") == [third, first, second]
    current = store.learned.in_use(EXAMPLES_KIND, PROJECT.id)
    assert current
    again = build_examples_body(
        select_examples(found_in(store), current.body["pinned"]), current.body
    )
    assert again["examples"][0]["case_id"] == third
    with store.writing():
        use_earlier(
            store, ArtefactChoice(EXAMPLES_KIND, PROJECT.id, number, 7.0, "Lea", "as it was")
        )
    assert in_use(store) == [first, second, third]
    assert len(store.learned.choices(EXAMPLES_KIND, PROJECT.id)) == 5, "every step is kept"


def test_what_was_removed_stays_removed_when_examples_are_chosen_anew(store: Store) -> None:
    for n in range(3):
        taught(store, f"c{n}", 0, 3)
    use_examples(store)
    gone = id_of(store, "c1")
    with store.writing():
        decide_example(store, PROJECT.id, gone, "remove", by="Lea", now=6.0)
    current = store.learned.in_use(EXAMPLES_KIND, PROJECT.id)
    assert current
    body = build_examples_body(select_examples(found_in(store), (), [gone]), current.body)
    assert sorted(one.case_id for one in parse_examples(body)) == ["c0", "c2"]
    assert gone in {one["id"] for one in body["examples"]}, "so that it can be allowed again"
    assert gone not in {one.id for one in parse_examples(body)}


def test_nothing_is_taken_without_a_reason_and_nothing_unknown_removed(store: Store) -> None:
    lead(store)
    with pytest.raises(InputError, match="reason"), store.writing():
        store_and_use(store, LearnedArtefact(THRESHOLD_KIND, PROJECT.id, 1.0, "Lea", {}), "  ")
    assert store.learned.all(THRESHOLD_KIND, PROJECT.id) == []
    with pytest.raises(InputError, match="not in use any more"), store.writing():
        decide_example(store, PROJECT.id, "nobody", "remove", by="Lea", now=1.0)
    with pytest.raises(InputError, match="in use already"), store.writing():
        use_earlier(
            store, ArtefactChoice(THRESHOLD_KIND, PROJECT.id, NOTHING_LEARNED, 1.0, "Lea", "back")
        )


def example(name: str, language: str = "en", tokens: int = 100) -> SpanExample:
    return SpanExample(name, name, language, "", WORDS, (span(0),), "", tokens)


def test_a_case_is_never_its_own_example_and_its_language_comes_first() -> None:
    known = [example("a"), example("b", "de"), example("c", "de-AT"), example("d")]
    assert [e.id for e in choose_examples(known, "de", "b")] == ["c", "a", "d"]
    assert [e.id for e in choose_examples(known, "en", "x")] == ["a", "d", "b", "c"]


def test_examples_keep_to_their_number_and_their_tokens() -> None:
    many = [example(f"e{n}") for n in range(9)]
    assert len(choose_examples(many, "en", "")) == MAX_PROMPT_EXAMPLES
    long = [example("l0", tokens=MAX_EXAMPLE_TOKENS - 150), example("l1", tokens=200), example("s")]
    assert [e.id for e in choose_examples(long, "en", "")] == ["l0", "s"]


def test_levels_go_by_language() -> None:
    body = {"reader": {"by_language": {"de": 0.5}, "otherwise": 0.4}, "corrections": []}
    learned = parse_thresholds(3, body)
    assert [learned.reader.at(x) for x in ("de", "de-AT", "en", "und")] == [0.5, 0.5, 0.4, 0.4]
    assert learned.votes.at("de") is None
    assert learned.reader.words == "de 0.50, else 0.40"


def test_an_annotator_changes_nothing(store: Store) -> None:
    lead(store)
    store.projects.set_member(Member(PROJECT.id, "Mira", "annotator", 1.0))
    with pytest.raises(NotAllowed, match="takes the role lead"), store.writing():
        store_and_use(
            store, LearnedArtefact(THRESHOLD_KIND, PROJECT.id, 1.0, "Mira", {}), "it is better"
        )
    with pytest.raises(NotAllowed, match="takes the role lead"), store.writing():
        use_earlier(
            store, ArtefactChoice(THRESHOLD_KIND, PROJECT.id, NOTHING_LEARNED, 1.0, "Mira", "back")
        )
    assert store.learned.all(THRESHOLD_KIND, PROJECT.id) == []
