"""The span editor: marks in a text by mouse or keyboard, exact in code points.

Python holds the truth. The browser sends the whole list of marks with a revision after every
change, is believed only once it fits the text, and shows what Python holds as text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

import streamlit as st

from components.widgets.controls import component, problem_kept, show_problem
from core.errors import InputError
from core.store.sqlite import from_plain

Status = Literal["marked", "suggested", "rejected"]
Did = Literal[
    "", "mark", "category", "resize", "remove", "accept", "reject", "accept_all", "none",
    "not_none", "undo", "redo",
]  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """Words that a person marked or an agent suggests: `[start, end)` in the text, code points.

    `by` names the agents whose suggestion it is or was ("" for a person's own mark) and `score` is
    how sure they were. `status`: an accepted suggestion is `marked` and keeps its `by`.
    """

    id: str
    start: int
    end: int
    category: str
    by: str = ""
    score: float | None = None
    status: Status = "marked"


@dataclass(frozen=True)
class Marked:
    """Everything that stands in the editor; `revision` counts up with each change.

    `none` is the explicit answer that nothing is to be marked; `did` is what changed last.
    """

    revision: int = 0
    marks: tuple[Mark, ...] = ()
    none: bool = False
    did: Did = ""

    @property
    def chosen(self) -> tuple[Mark, ...]:
        """The marks that count: a person's own and the accepted, in the order of the text."""
        kept = [mark for mark in self.marks if mark.status == "marked"]
        return tuple(sorted(kept, key=lambda mark: (mark.start, mark.end)))


def marked_from(said: object, text: str, categories: Collection[str]) -> Marked:
    """What the browser said, once it fits the text.

    Raises:
        InputError: it has another shape, a mark lies outside of the text or has no category of
            these, or two have one id.
    """
    found = from_plain(Marked, said)
    for mark in found.marks:
        if not 0 <= mark.start < mark.end <= len(text):
            raise InputError(
                f"Expected marks within the {len(text):,} characters of the text, found one from "
                f"{mark.start} to {mark.end}; mark these words again."
            )
        if mark.category not in categories:
            raise InputError(
                f"Expected one of the categories {', '.join(categories)}, found “{mark.category}”."
            )
    if len({mark.id for mark in found.marks}) < len(found.marks):
        raise InputError("Expected every mark once, found one twice; mark these words again.")
    if found.none and found.chosen:
        raise InputError("Nothing and something cannot both be marked; take one of them back.")
    return found


Words = Mapping[str, str]
Edited = TypeVar("Edited")


def mount_editor(
    name: str,
    data: dict[str, Any],
    categories: Words,
    read: Callable[[object], Edited],
    on_edit: Callable[[Edited], None],
    *,
    key: str,
    is_locked: bool,
) -> None:
    """Mount an editor: what `read` takes goes to `on_edit`, an InputError of it is shown."""

    def edited() -> None:
        said = st.session_state[key].get("edit")
        if said is None or is_locked:
            return
        with problem_kept(f"{key}.problem"):
            on_edit(read(said))

    choices = [{"id": name, "words": words} for name, words in categories.items()]
    component(name)(
        key=key,
        data=data | {"categories": choices, "locked": is_locked},
        default={"edit": None},
        on_edit_change=edited,
    )
    show_problem(f"{key}.problem")


def span_editor(
    text: str,
    marked: Marked,
    categories: Words,
    on_edit: Callable[[Marked], None],
    *,
    key: str,
    language: str = "",
    none_words: str = "",
    is_locked: bool = False,
) -> None:
    """Draw the text with its marks; call it within a fragment, for the text travels at every rerun.

    Args:
        text: shown exactly as it is; offsets count its code points.
        marked: what stands in the editor by now.
        categories: ids to words; the first nine have the keys 1 to 9.
        on_edit: is called with all that stands there after each change.
        key: of the component; another text wants another one.
        language: of the text, for where its words end; "" where unknown.
        none_words: what the explicit answer says that nothing is to be marked; "" offers none.
        is_locked: nothing can be changed.
    """
    mount_editor(
        "span_editor",
        {
            "text": text,
            "revision": marked.revision,
            "marks": [asdict(mark) for mark in marked.marks],
            "none": marked.none,
            "language": language,
            "noneWords": none_words,
        },
        categories,
        lambda said: marked_from(said, text, categories),
        on_edit,
        key=key,
        is_locked=is_locked,
    )
