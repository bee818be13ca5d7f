"""Where an English question's subject ends: word lists and rules, no model.

A question turns verb and subject round ("Was the bridge opened …"); to say it as a statement one
has to know where its subject ends. Where that is not plain the answer is None, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

BE = frozenset("is are was were".split())
DO = frozenset("do does did".split())
HAVE = frozenset("has have had".split())
MODAL = frozenset("can could will would should may might must".split())
AUXILIARY = BE | DO | HAVE | MODAL
PRONOUNS = frozenset("he she it they we you i there this that these those".split())
DETERMINERS = frozenset("the a an his her its their our my your this that these those".split())
LINKS = frozenset("of and & or de la le du van von der al bin".split())
PLACING = frozenset("in on at by from as under over between near part".split())
BEFORE_PREDICATE = frozenset(
    "located based known also still ever both all currently originally actually really considered "
    "called named related similar able more less better worse older younger safe good bad true "
    "false open due useful viable legal".split()
)
DESCRIBING = re.compile(r"[a-z]{3,}(?:ive|able|ible|ful|ous|less)$")
DEGREE = re.compile(r"[a-z]{3,}(?:ally|ely|ently|antly)$")
PARTICIPLES = frozenset(
    "born built made found won lost written held sung begun given taken known seen shot sold sent "
    "set spoken left led run cast read played put paid drawn shown grown thought told bought "
    "brought become come been done gone got kept met said spent stood worn".split()
)
PAST = frozenset(
    "wrote won came became began made found ran led held sang sold shot took gave went got met "
    "said spent stood broke built bought brought drew drove fell felt fought flew grew kept knew "
    "left lost paid rose sat saw sent spoke taught told thought wore".split()
)
VERBS = frozenset(
    "be live lives play plays help helps work works write win lose come become begin start end "
    "make find run lead hold sing sell take give go get meet say spend stand break build buy "
    "bring draw fall feel fight fly grow keep know leave pay rise see send speak teach tell think "
    "wear die marry move study attend act appear star direct produce release publish record "
    "perform create invent discover develop design serve join form belong own represent compete "
    "happen occur open close cause causes reduce reduces increase increases improve improves "
    "affect affects predict predicts influence influences prevent prevents contain contains "
    "include includes have has need needs use uses require requires mean means want change "
    "changes exist provide provides support supports protect protects leads depend graduate host "
    "coach train receive earn share swim eat drink believe call".split()
)
EDGE = re.compile(r"^[\"'“”‘’(]+|[\"'“”‘’),.;:!?]+$")


def bare(word: str) -> str:
    """The word without marks around it, small."""
    return EDGE.sub("", word).casefold()


def parted(words: Sequence[str], auxiliary: str) -> tuple[list[str], list[str]] | None:
    """Subject and predicate of what follows the auxiliary; None where that is not plain."""
    end = _subject_end(words, auxiliary)
    if end is None or not 0 < end < len(words):
        return None
    return list(words[:end]), list(words[end:])


def opens_subject(words: Sequence[str]) -> bool:
    """True where a subject plainly begins: a name, a pronoun, an article."""
    first = words[0] if words else ""
    return first[:1].isupper() or bare(first) in PRONOUNS | DETERMINERS


def is_verb(word: str) -> bool:
    """True for what plainly is a verb after a noun: an auxiliary, a past, a common present."""
    small = bare(word)
    return word[:1].islower() and (
        small in AUXILIARY | PAST | VERBS or (small.endswith("ed") and len(small) > 4)
    )


def is_told(words: Sequence[str], place: int) -> bool:
    """True for the verb of a statement: an auxiliary, or a past that is no participle."""
    small = bare(words[place])
    if not words[place][:1].islower() or small in AUXILIARY:
        return small in AUXILIARY
    follows = bare(words[place + 1]) if place + 1 < len(words) else ""
    is_past = small in PAST or (small.endswith("ed") and len(small) > 4)
    return is_past and follows != "by"


def _subject_end(words: Sequence[str], auxiliary: str) -> int | None:
    if not words:
        return None
    if bare(words[0]) in PRONOUNS - DETERMINERS:
        return 1
    start = 1 if bare(words[0]) in DETERMINERS | {"both"} else 0
    after_names = _after_names(words, start)
    if auxiliary in BE:
        found = _first_predicate(words, max(start + 1, after_names))
        short = len(words) - start == 2 and words[-1][:1].islower()
        return found or (start + 1 if short else None)
    for place in range(max(start + 1, after_names), len(words)):
        if _carries(words, place, auxiliary):
            return place
    return None


def _after_names(words: Sequence[str], start: int) -> int:
    """The end of the capitalised run that begins at `start`, links inside it included."""
    end = start
    while end < len(words):
        ahead = end
        while ahead < len(words) and bare(words[ahead]) in LINKS | {"the"} and ahead > start:
            ahead += 1
        if ahead >= len(words) or not (words[ahead][:1].isupper() or words[ahead][:1].isdigit()):
            return end
        end = ahead + 1
        if words[ahead].endswith(","):
            return end
    return end


def _first_predicate(words: Sequence[str], begin: int) -> int | None:
    """Where the predicate of a form of "be" begins.

    A preposition begins it only right after the subject's first noun; later it may belong to it.
    """
    for place in range(begin, len(words)):
        small, before = bare(words[place]), bare(words[place - 1])
        if before in LINKS:
            continue
        if small in BEFORE_PREDICATE or _is_participle(words, place) or _describes(words, place):
            return place
        if small in PLACING and place <= begin + 1:
            return place
        if small in {"a", "an", "the"} and before not in PLACING | {"for", "to", "with"}:
            return place
    return None


def _carries(words: Sequence[str], place: int, auxiliary: str) -> bool:
    """True for the verb that an auxiliary other than "be" waits for."""
    word = words[place]
    if not word[:1].islower() or bare(words[place - 1]) in LINKS | DETERMINERS:
        return False
    if auxiliary in HAVE:
        return _is_participle(words, place)
    return bare(word) in VERBS


def _describes(words: Sequence[str], place: int) -> bool:
    """True for "effective" where no noun follows that it could belong to."""
    small = bare(words[place])
    follows = bare(words[place + 1]) if place + 1 < len(words) else "and"
    goes_on = follows in PLACING | {"and", "or", "for", "to", "with", "than", "when", "if"}
    return DEGREE.match(small) is not None or (DESCRIBING.match(small) is not None and goes_on)


def _is_participle(words: Sequence[str], place: int) -> bool:
    """True for "opened" and "born", and for "planning" where that plainly goes on ("to", "the")."""
    small = bare(words[place])
    if not words[place][:1].islower():
        return False
    if small.endswith("ing") and len(small) > 4:
        follows = bare(words[place + 1]) if place + 1 < len(words) else ""
        return follows in PLACING | {"to", "the", "a", "an", "for", "with"}
    return small in PARTICIPLES or (small.endswith("ed") and len(small) > 4)
