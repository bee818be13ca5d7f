"""What a sentence leaves to the ones before it is filled in, and offsets stay as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline.audit_agents import BuiltInSegmenter
from core.runtime.concurrency import Stop
from tests.fakes import make_case

COMPLETED = [
    ("en", "The Orrin tower is old. It is 512 m tall.", "The Orrin tower is 512 m tall."),
    ("en", "Lena Moor was an architect. Her house stands.", "Lena Moor's house stands."),
    ("en", "Orrin Works was a firm. The company is rich.", "Orrin Works, the company, is rich."),
    ("en", "Lena Moor was an architect. Born in Bergen.", "Lena Moor, born in Bergen."),
    ("en", "Acme is old. It is big. It is rich.", "Acme is rich."),
    ("de", "Anna Berg ist Ärztin. Sie wohnt in Bonn.", "Anna Berg wohnt in Bonn."),
    ("fr", "Marie Duval est médecin. Elle habite à Lyon.", "Marie Duval habite à Lyon."),
    ("zh", "云溪桥于1932年建成。它长512米。", "云溪桥长512米。"),
    ("zh", "王小明是医生。他的家在北京。", "王小明的家在北京。"),
    ("zh", "云海公司成立于1950年。该公司有300名员工。", "云海公司有300名员工。"),
    ("zh", "云溪桥是一座桥。位于云溪镇。", "云溪桥位于云溪镇。"),
]
AS_IT_IS = [
    ("en", "Acme was founded in 1950. The city of Bonn is old."),
    ("fr", "Marie Duval est médecin. Il y a trois écoles."),
    ("zh", "云溪桥于1932年建成。其他桥都很短。"),
    ("zh", "在1932年，人们很穷。花很红。"),
]


def last_of(text: str, language: str) -> tuple[str, str]:
    case = make_case(text, language=language)
    found = BuiltInSegmenter().segment(case, Stop())
    assert all(text[s.start : s.end] == s.text for s in found)
    return found[-1].text, found[-1].rewrite


@pytest.mark.parametrize(("language", "text", "rewrite"), COMPLETED)
def test_what_refers_back_is_completed(language: str, text: str, rewrite: str) -> None:
    assert last_of(text, language)[1] == rewrite


@pytest.mark.parametrize(("language", "text"), AS_IT_IS)
def test_what_does_not_stays_as_it_is(language: str, text: str) -> None:
    own, rewrite = last_of(text, language)
    assert rewrite == own


def test_a_chinese_sentence_ends_before_a_digit() -> None:
    case = make_case("它长512米。3 + 4 = 8。所以是8。", language="zh")
    texts = [s.text for s in BuiltInSegmenter().segment(case, Stop())]
    assert texts == ["它长512米。", "3 + 4 = 8。", "所以是8。"]


@given(st.text(max_size=120), st.sampled_from(["en", "zh", "de", "fr", "es", "ar"]))
def test_offsets_are_those_of_the_response_whatever_it_says(text: str, language: str) -> None:
    case = make_case(text, language=language)
    end = 0
    for number, statement in enumerate(BuiltInSegmenter().segment(case, Stop())):
        assert statement.index == number
        assert end <= statement.start < statement.end <= len(text)
        assert text[statement.start : statement.end] == statement.text
        assert statement.rewrite
        end = statement.end
