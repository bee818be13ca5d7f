"""Which length a question in German, French or Spanish asks of its answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tools.asked_length_european import european_lengths
from core.tools.lengths import Length


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Beschreibe den Hafen in 100 Wörtern.", Length("word", 100, 100)),
        ("Fasse den Text in drei Sätzen zusammen.", Length("sentence", 3, 3)),
        ("Schreibe mindestens 50 Wörter über Bienen.", Length("word", 50, None)),
        ("Antworte mit höchstens 20 Wörtern.", Length("word", None, 20)),
        ("Deine Antwort soll nicht mehr als 200 Zeichen haben.", Length("character", None, 200)),
        ("Schreibe einen kurzen Text mit etwa 80 Wörtern.", Length("word", 80, 80, "about")),
        ("Schreiben Sie 50 bis 70 Wörter über Tee.", Length("word", 50, 70)),
        ("Erkläre in genau zwanzig Wörtern, warum der Himmel blau ist.", Length("word", 20, 20)),
        ("Erkläre, warum der Himmel blau ist, in 50 Wörtern.", Length("word", 50, 50)),
        ("In 30 Wörtern: Was ist Rost?", Length("word", 30, 30)),
        ("Schreibe weniger als 1.000 Wörter über das Meer.", Length("word", None, 999)),
        ("Décris le port en 100 mots.", Length("word", 100, 100)),
        ("Écrivez un résumé de 80 mots environ.", Length("word", 80, 80, "about")),
        ("Résumez ce texte de 500 mots en deux phrases.", Length("sentence", 2, 2)),
        ("Réponds en 20 mots maximum.", Length("word", None, 20)),
        ("Expliquez les marées en au moins trois phrases.", Length("sentence", 3, None)),
        ("Rédigez entre vous un texte de 100 à 150 mots.", Length("word", 100, 150)),
        ("Ta réponse doit comporter moins de 30 mots.", Length("word", None, 29)),
        ("Écris cent vingt mots sur le thé.", Length("word", 120, 120)),
        ("Describe el puerto en 100 palabras.", Length("word", 100, 100)),
        ("Escribe al menos 50 palabras sobre las abejas.", Length("word", 50, None)),
        ("Responde con 20 palabras como máximo.", Length("word", None, 20)),
        ("Redacta un texto de unas 80 palabras.", Length("word", 80, 80, "about")),
        ("Explica las mareas en tres frases.", Length("sentence", 3, 3)),
        ("Resume este artículo de 500 palabras en dos párrafos.", Length("paragraph", 2, 2)),
        ("La respuesta debe tener menos de 200 caracteres.", Length("character", None, 199)),
        ("Escribe cincuenta palabras sobre el té.", Length("word", 50, 50)),
    ],
)
def test_a_length_that_is_asked_for(question: str, expected: Length) -> None:
    assert european_lengths(question) == (expected,)


@pytest.mark.parametrize(
    "question",
    [
        "Warum sollten Titel unter 60 Zeichen bleiben?",
        "Wie viele Wörter hat dieser Satz?",
        "Fasse diesen Artikel von 500 Wörtern zusammen.",
        "Erkläre, wie er 1000 Wörter am Tag schreibt.",
        "Pourquoi les titres ont-ils moins de 60 caractères ?",
        "Résume cet article de 500 mots.",
        "Explique comment elle écrit 500 mots par jour.",
        "¿Por qué los títulos tienen menos de 60 caracteres?",
        "Resume este artículo de 500 palabras.",
        "¿Cuántas palabras tiene esta frase?",
        "Write 100 words about tea.",
        "Schreibe 50 Wörter oder 100 Zeichen, in 20 Wörtern.",
        "",
    ],
)
def test_a_length_that_is_only_told_of(question: str) -> None:
    assert european_lengths(question) == ()


@given(st.text(max_size=200))
def test_any_question_can_be_read(text: str) -> None:
    for led in (text, f"Schreibe {text} Wörter", f"en 100 {text} mots", f"Escribe 5 {text}"):
        assert all(length.least or length.most for length in european_lengths(led))
