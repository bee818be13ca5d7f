"""How a project shares its review queue: the fields on Project, and the rules they come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.categories import CATEGORY_WORDS
from core.errors import InputError
from core.records import Project
from core.reviews import category_words
from core.store.queue_filter import Rules

MOST_PEOPLE = 20
LONGEST_MINUTES = 480
LONGEST_CATEGORY = 40  # characters


def rules_of(project: Project) -> Rules:
    """As the queue asks for them."""
    return Rules(project.people_each, 60.0 * project.hold_minutes, project.random_share)


def draw_review_rules(project: Project) -> dict[str, Any]:
    """The fields; their values by the names that `Project` gives them."""
    key = f"project.{project.id}"
    left, middle, right = st.columns(3)
    people = left.number_input(
        "People who review each item", 1, MOST_PEOPLE, project.people_each, key=f"{key}.people"
    )
    minutes = middle.number_input(
        "Minutes that an item stays in hand",
        1, LONGEST_MINUTES, project.hold_minutes, key=f"{key}.minutes",
        help="Then it is free for others. What was written is kept, and counts when it is saved.",
    )  # fmt: skip
    share = right.number_input(
        "Share of items drawn at random (%)",
        0, 100, round(100 * project.random_share), key=f"{key}.share",
        help="The others are those that would teach most. Without a random share, what people "
        "find says little about all the rest.",
    )  # fmt: skip
    is_blind = st.toggle(
        "Hide the machine's verdict until a person has answered",
        value=project.is_blind,
        key=f"{key}.blind",
        help="On Review. A run's own page shows the verdict to everybody who opens it.",
    )
    categories = st.multiselect(
        "What may be wrong with marked words",
        list(dict.fromkeys([*project.categories, *CATEGORY_WORDS])),
        default=list(project.categories),
        format_func=category_words,
        accept_new_options=True,
        key=f"{key}.categories",
        help="The first nine have the keys 1 to 9. Type a word of your own to add it.",
    )
    return {
        "categories": tuple(categories),
        "people_each": int(people),
        "hold_minutes": int(minutes),
        "random_share": share / 100.0,
        "is_blind": bool(is_blind),
    }


def sound_categories(categories: Sequence[str]) -> tuple[str, ...]:
    """The categories as they can be kept, each once; the words of a default one are that one.

    Raises:
        InputError: none is left, or one is too long.
    """
    ids: dict[str, str] = {words: name for name, words in CATEGORY_WORDS.items()}
    flat = (" ".join(name.split()) for name in categories if name.strip())
    found = tuple(dict.fromkeys(ids.get(name, name) for name in flat))
    if not found:
        raise InputError("Expected at least one thing that may be wrong, found none; choose one.")
    if longest := next((name for name in found if len(name) > LONGEST_CATEGORY), ""):
        raise InputError(
            f"Expected at most {LONGEST_CATEGORY} characters, found {len(longest)} in "
            f"“{longest[:20]}…”; shorten it."
        )
    return found
