"""Whether runs that were right give people's reasons: quotes in common, and a model's ratings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import streamlit as st

from components import state
from components.reliability_kept import Figures
from components.words import escaped, protocol_words, when
from core.evaluation.reasons_rated import Rated, aligned
from core.learning.heard import Row
from core.learning.reasons import note_name, reasons_of
from core.store import open_store
from core.store.changes import Mark

COMMAND = "python -m core.evaluation.alignment --model PROVIDER/MODEL"


def draw_reasons(project_id: str, found: Figures) -> None:
    """By protocol; nothing where no run was right for which somebody gave a reason."""
    with state.open_store() as store:
        mark = (*store.changes.of_corrections(), *store.changes.of_runs())
        kept = store.projects.note(note_name(project_id))
    counted = _counted(str(state.home()), project_id, mark, found.rows)
    told: dict[str, Any] = json.loads(kept) if kept else {}
    if not counted and not told:
        return
    st.subheader("Do they give people's reasons", anchor=False)
    ratings = {own["protocol"]: own for own in told.get("by_protocol", [])}
    st.dataframe(
        [_row(own, ratings.get(own.protocol)) for own in counted],
        key="reliability.reasons",
        hide_index=True,
        height="content",
    )
    for own in told.get("paired", []):
        st.markdown(f"- {escaped(_lead_words(own))}")
    st.caption(
        "Over runs whose verdict is the person's. Quoted: of the words that people marked in the "
        "sources, how many the run quotes where it argues for its verdict; found: how many lie in "
        "any passage that it found. 95 % intervals over cases. Source: ColMAD 4, figure 5b."
    )
    if told:
        st.caption(
            escaped(
                f"Agreement: 1 (another reason) to 5 (the same), rated by {told['model']} on "
                f"{when(told['at'])}. Unlike: the same explanations against reasons that people "
                "gave on other cases of that label."
            )
        )
    else:
        st.caption(
            "How far explanations agree with people's reasons is rated by a language model only; "
            f"nobody has had that done here yet: `{COMMAND}`."
        )


@st.cache_resource(max_entries=4, show_spinner="Reading people's reasons")
def _counted(home: str, project_id: str, mark: Mark, _rows: tuple[Row, ...]) -> list[Rated]:
    """Kept until somebody says something or a run ends; `_rows` follow from the rest."""
    with open_store(Path(home)) as store:
        return aligned(reasons_of(store, _rows))[0]


def _row(own: Rated, rating: dict[str, Any] | None) -> dict[str, str]:
    told = rating or {}
    rated = f", n={told['rated']}" if told.get("rated") else ""
    unusable = f", {told['unusable']} unusable" if told.get("unusable") else ""
    return {
        "Protocol": protocol_words(own.protocol, short=True),
        "Runs": str(own.runs),
        "Marked words quoted": _range(own.quoted) + (f", n={own.marks}" if own.marks else ""),
        "Found": "–" if own.found is None else f"{own.found:.2f}",
        "Agreement": _range(told.get("agreement")) + rated + unusable,
        "Unlike": _range(told.get("unlike")),
    }


def _lead_words(own: dict[str, Any]) -> str:
    one, other = (protocol_words(own[name], short=True) for name in ("one", "other"))
    lead = own["lead"]
    return (
        f"{one} beside {other}, on the {own['n']} cases on which both were right: "
        f"{lead['value']:+.2f} ({lead['low']:+.2f} to {lead['high']:+.2f}) in agreement."
    )


def _range(share: dict[str, float] | None) -> str:
    if share is None:
        return "–"
    return f"{share['value']:.2f} ({share['low']:.2f} to {share['high']:.2f})"
