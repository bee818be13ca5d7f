"""How a project shares its review queue: the fields on Project, and the rules they come to."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.records import Project
from core.store.queue_filter import Rules

MOST_PEOPLE = 20
LONGEST_MINUTES = 480


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
    )
    return {
        "people_each": int(people),
        "hold_minutes": int(minutes),
        "random_share": share / 100.0,
        "is_blind": bool(is_blind),
    }
