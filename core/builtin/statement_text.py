"""A question and its answer as one statement: what the entailment reader is trained on and reads.

"Is Lisbon the capital of Spain?" with "No" reads "Lisbon is not the capital of Spain.". English
only, and only where the order of words is plain; else question and answer stand side by side.
Deterministic, and part of the reader: whoever changes what it returns has to train anew.
"""

from __future__ import annotations

import re

from core.builtin.lexicon import lexicon
from core.builtin.question_parts import (
    AUXILIARY,
    BE,
    DO,
    HAVE,
    PRONOUNS,
    bare,
    is_told,
    is_verb,
    opens_subject,
    parted,
)

SHORT_WORDS = 8
SETTING = frozenset("i we you there".split())
ASKING = frozenset("who whom whose what which when where how why".split())
PREPOSITIONS = frozenset("in on at for by from to with of as during under about into".split())
DENIALS = frozenset("not never no".split())
SMALL = PREPOSITIONS | {"a", "an", "the"}
FINAL = (".", "!", "?", "…", "。")
ABBREVIATION = re.compile(r"\b\w\.$")
YEAR = re.compile(r"[12]\d{3}\b")


def statement_text(question: str, answer: str) -> str:
    """One text that says what the answer says.

    Blanks become single spaces. An answer that is a sentence stays as it is, and so does any answer
    without a question. Empty only where both are.
    """
    asked = " ".join(question.split()).rstrip("?？ ")
    said = " ".join(answer.split())
    if not asked or not said:
        return said or asked
    words = asked.split(" ")
    opener = bare(words[0])
    is_sentence = _is_sentence(said)
    made: str | None = None
    if opener in AUXILIARY:
        made = _polar(words, said)
    elif not is_sentence:
        made = _filled(words, _unstopped(said))
    if made is None:
        return said if is_sentence else f"{asked}? {said}"
    return _sentence(made)


def _is_sentence(said: str) -> bool:
    """True for an answer with a verb and a subject of its own, or one too long for a mere name.

    A short one about "it" or "them" needs the question, which says what that is.
    """
    words = said.split(" ")
    if len(words) > SHORT_WORDS:
        return True
    if bare(words[0]) in PRONOUNS - SETTING:
        return False
    return len(words) > 2 and any(is_told(words, place) for place in range(1, len(words)))


def _polar(words: list[str], said: str) -> str | None:
    """A bare yes or no, or one of the two things that were offered, in the question's words."""
    auxiliary, rest = bare(words[0]), words[1:]
    found = parted(rest, auxiliary)
    if found is None:
        return None
    if {bare(word) for word in rest} & DENIALS:
        return None  # what a yes means then is not plain
    subject, predicate = " ".join(found[0]), " ".join(found[1])
    given = lexicon("en")
    told = bare(said)
    if told in given.yes:
        return f"{subject} {auxiliary} {predicate}"
    if told in given.no:
        return f"{subject} {auxiliary} not {predicate}"
    offered = [bare(side) for side in predicate.split(" or ")]
    is_choice = auxiliary in BE and len(offered) == 2 and told in offered
    return f"{subject} {auxiliary} {_unstopped(said)}" if is_choice else None


def _filled(words: list[str], said: str) -> str | None:
    """The answer in the place of what the question asks for; None where that is not plain."""
    words = _without_choice(words, said)
    opener = bare(words[0])
    if opener in PREPOSITIONS and len(words) > 2 and bare(words[1]) in ASKING:
        return _asked_for(words[1:], said, opener)
    if opener in ("who", "whom", "what"):
        return _who(words, said)
    if opener in ("which", "whose"):
        return _asked_for(words, said, "")
    if opener in ("when", "where"):
        return _placed(words, said, "in" if opener == "where" or YEAR.match(said) else "")
    if opener == "how":
        return _how(words, said)
    return _at_the_end(words, said)


def _who(words: list[str], said: str) -> str | None:
    """Who or what: the subject ("Who wrote …") or something else ("What is she known for")."""
    if len(words) < 2:
        return None
    verb = bare(words[1])
    rest = words[2:]
    if verb in BE and rest:
        if bare(rest[-1]) not in PREPOSITIONS:
            return f"{said} {verb} {' '.join(rest)}"
        return _inverted(rest, verb, said, "")
    if verb in AUXILIARY:
        inverted = _inverted(rest, verb, said, "") if verb in DO or opens_subject(rest) else None
        if inverted or verb in DO or (opens_subject(rest) and verb not in HAVE):
            return inverted
        return f"{said} {' '.join(words[1:])}" if rest else None
    if is_verb(words[1]) or bare(words[0]) == "who":
        return f"{said} {' '.join(words[1:])}"
    return _asked_for(words, said, "")


def _asked_for(words: list[str], said: str, preposition: str) -> str | None:
    """Which film, what year, how many bridges: the noun goes, the answer comes."""
    end = next((i for i in range(1, len(words)) if is_verb(words[i])), None)
    if end is None:
        return None
    verb, rest = bare(words[end]), words[end + 1 :]
    noun = {bare(word) for word in words[1:end]}
    if not preposition and noun & {"year", "month", "century", "decade"}:
        preposition = "in"
    if verb not in AUXILIARY:
        return f"{said} {' '.join(words[end:])}"
    if verb in DO or ((verb in BE or preposition) and opens_subject(rest)):
        made = _inverted(rest, verb, said, preposition)
        if made is not None or verb in DO or preposition:
            return made
    if not rest or (verb not in BE and opens_subject(rest)):
        return _inverted(rest, verb, said, preposition) if rest else None
    return f"{said} {verb} {' '.join(rest)}"


def _placed(words: list[str], said: str, preposition: str) -> str | None:
    """When and where; an answer that is a year stands after "in"."""
    if len(words) < 3 or bare(words[1]) not in AUXILIARY:
        return None
    verb, rest = bare(words[1]), words[2:]
    made = _inverted(rest, verb, said, preposition)
    if made is None and verb in BE and opens_subject(rest):
        return f"{' '.join(rest)} {verb} {_after(preposition, said)}"
    return made


def _how(words: list[str], said: str) -> str | None:
    """How many bridges, how tall; "how did it …" is left alone."""
    if len(words) < 4:
        return None
    if bare(words[1]) in ("many", "much"):
        end = next((i for i in range(2, len(words)) if is_verb(words[i])), 2)
        noun = [word for word in words[2:end] if bare(word) not in said.casefold().split()]
        return _asked_for(words[1:], " ".join([said, *noun]), "")
    verb, rest = bare(words[2]), words[3:]
    if verb not in BE or not opens_subject(rest):
        return None
    has_measure = {bare(said.split(" ")[0])} & PREPOSITIONS or bare(words[1]) in said.casefold()
    measure = "" if has_measure else f" {words[1]}"
    return f"{' '.join(rest)} {verb} {said}{measure}"


def _at_the_end(words: list[str], said: str) -> str | None:
    """A question in a statement's order: "It was designed by which architect"."""
    place = next((i for i, w in enumerate(words) if i > 1 and bare(w) in ("which", "what")), None)
    if place is None or words[place - 1].endswith(","):
        return None
    before, after = words[:place], words[place + 1 :]
    orders = any(is_verb(word) for word in before) and not any(is_verb(word) for word in after)
    return f"{' '.join(before)} {said}" if orders else None


def _inverted(rest: list[str], verb: str, said: str, preposition: str) -> str | None:
    """Subject, verb, predicate, answer: "The bridge was opened in 1932"."""
    found = parted(rest, verb)
    if found is None:
        alone = len(rest) == 1 and bare(rest[0]) in PRONOUNS and verb in BE
        return f"{rest[0]} {verb} {_after(preposition, said)}" if alone else None
    subject, predicate = found
    if bare(predicate[-1]) in PREPOSITIONS:
        return f"{' '.join(subject)} {verb} {' '.join(predicate)} {said}"
    if verb in DO and not preposition and len(predicate) > 1 and bare(predicate[1]) in PREPOSITIONS:
        # "Who did she marry in 1950": whom stands right after the verb
        place = 2 if len(predicate) > 2 and bare(predicate[2]) in PREPOSITIONS else 1
        predicate = [*predicate[:place], said, *predicate[place:]]
        return f"{' '.join(subject)} {verb} {' '.join(predicate)}"
    return f"{' '.join(subject)} {verb} {' '.join(predicate)} {_after(preposition, said)}"


def _after(preposition: str, said: str) -> str:
    has_one = bare(said.split(" ")[0]) in PREPOSITIONS
    return said if has_one else f"{preposition} {said}".strip()


def _without_choice(words: list[str], said: str) -> list[str]:
    """The question without "A or B" at its end where the answer is one of the two."""
    text, chosen = " ".join(words), said.casefold()
    place = text.casefold().rfind(chosen)
    if place < len(words[0]) + 2 or " or " not in text[len(words[0]) :]:
        return words
    before, after = text[:place].rstrip(), text[place + len(chosen) :].lstrip(" ,")
    if after.startswith("or "):
        kept = before
    elif not after and before.endswith(" or"):
        head = before[:-3].rstrip(" ,").split(" ")
        kept = " ".join(_without_name(head))
    else:
        return words
    return kept.rstrip(" ,:;-–—").split(" ")


def _without_name(head: list[str]) -> list[str]:
    """What is left when the last alternative, a run of capitals or what follows a comma, goes."""
    comma = max((i for i, word in enumerate(head[:-1]) if word.endswith((",", ":"))), default=None)
    if comma is not None:
        return head[: comma + 1]
    end = len(head)
    while end > 2 and (head[end - 1][:1].isupper() or bare(head[end - 1]) in ("of", "the", "for")):
        end -= 1
    return head[:end]


def _unstopped(said: str) -> str:
    """The answer as it stands inside a sentence: its full stop goes, its article is small.

    A stop after a single letter belongs to an abbreviation and stays.
    """
    text = said if ABBREVIATION.search(said) else said.rstrip(".")
    first, blank, others = text.partition(" ")
    if blank and first.casefold() in SMALL:
        first = first.casefold()
    return f"{first}{blank}{others}"


def _sentence(made: str) -> str:
    text = " ".join(made.split())
    opened = text[:1].upper() + text[1:] if text[:1].isascii() else text
    return opened if opened.endswith(FINAL) else f"{opened}."
