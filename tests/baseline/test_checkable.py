"""Which statements say something that could be true or false."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.baseline.tool_picker import why_not_checkable
from core.schema.records import Statement
from tests.fakes import make_case


def why(text: str, language: str = "en") -> str:
    statement = Statement(0, 0, len(text), text, text)
    return why_not_checkable(replace(make_case(text), language=language), statement)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Sure, Sydney is the capital of Australia.", "en"),
        ("Of course, the moon is made of cheese.", "en"),
        ("Certainly! The moon is made of cheese.", "en"),
        ("Please note that Sydney is the capital of Australia.", "en"),
        ("I'm sorry, but Sydney is the capital of Australia.", "en"),
        ("Thanks to Fleming, insulin was found in London.", "en"),
        ("Hi-fi systems were built in Oslo at first.", "en"),
        ("I believe that Sydney is the capital of Australia.", "en"),
        ("当然，悉尼是澳大利亚的首都。", "zh"),
        ("请注意，悉尼是澳大利亚的首都。", "zh"),
        ("祝融号是一辆月球车。", "zh"),
        ("很高兴的是他得了奖。", "zh"),
        ("```text\nThe tower has eight floors.\n```", "en"),
        ("Natürlich ist Sydney die Hauptstadt von Australien.", "de"),
        ("Bien sûr, Sydney est la capitale de l'Australie.", "fr"),
        ("Gracias a Fleming se descubrió la insulina.", "es"),
    ],
)
def test_a_fact_stays_one_whatever_leads_up_to_it(text: str, language: str) -> None:
    assert not why(text, language)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Sure!", "en"),
        ("I'm happy to help.", "en"),
        ("```python\ndef fares(adults):\n    return adults * 12.5\n```", "en"),
        ("Of course, I can help you with that.", "en"),
        ("Certainly, here is an overview:", "en"),
        ("Thanks for asking!", "en"),
        ("Let me know if you need more.", "en"),
        ("I hope this helps.", "en"),
        ("I think it is a fine tower.", "en"),
        ("As an AI language model, I cannot taste food.", "en"),
        ("Please tell me more about it.", "en"),
        ("When was it built?", "en"),
        ("你好！", "zh"),
        ("好的，以下是简介：", "zh"),
        ("很高兴为您介绍茶山博物馆。", "zh"),
        ("祝你好运！", "zh"),
        ("Hallo!", "de"),
        ("Merci !", "fr"),
        ("¡Hola!", "es"),
    ],
)
def test_greetings_offers_opinions_and_questions_state_nothing(text: str, language: str) -> None:
    assert why(text, language)


def test_an_opinion_with_a_figure_is_checked() -> None:
    assert not why("I think it is 412 m long.")
