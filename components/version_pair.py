"""Any two versions side by side; the choice stands in the address, so that it can be shared."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import streamlit as st

from components import state
from components.kept_results import Kept, keep, kept
from components.version_details import draw_details
from components.version_figures import draw_figures
from components.words import escaped, when
from core.errors import ReviewError
from core.learning.comparison import compare
from core.store.changes import Mark
from core.store.versions import SEED_VERSION, Version

PROBLEM = "retrain.pair.problem"


def draw_pair(versions: Sequence[Version], active: str) -> None:
    """The two that were chosen; first the newest beside the one that it was compared with."""
    cards = {version.id: version.card for version in versions}
    names = [*cards, SEED_VERSION]
    newest = names[0]
    st.subheader("Side by side", anchor=False)
    left, right = st.columns(2)
    with left:
        after = _chosen("version", "Version", names, newest)
    with right:
        usual = str(cards.get(after, {}).get("compared_with") or active)
        before = _chosen("beside", "Beside", names, usual)
    if after == before:
        st.caption("Choose two different ones.")
        return
    card = cards.get(after, {})
    today = kept(_name(before, after))
    if today is not None:
        st.caption(f"On all cases that were held out on {when(today.at)}.")
        draw_figures(today.value, before, after, card.get("losses", []))
    elif before == str(card.get("compared_with") or active) and card.get("holdout"):
        st.caption("On the cases that were held out when it was trained.")
        draw_figures(card["holdout"], before, after, card.get("losses", []))
    _draw_compare(before, after, today)
    if card:
        draw_details(after, card)


def _name(before: str, after: str) -> str:
    """Under which a comparison of today's is kept."""
    return f"pair {before} {after}"


def _chosen(name: str, words: str, names: list[str], usual: str) -> str:
    """A choice that the address carries; an unknown one in it is the usual one."""
    key = f"retrain.pair.{name}"
    given = st.query_params.get(name, "")
    if st.session_state.get(key) not in names:
        wanted = given if given in names else usual
        st.session_state[key] = wanted if wanted in names else SEED_VERSION
    # Which is active stands above: a choice once made keeps the words that it was made in.
    value = str(st.selectbox(words, names, key=key))
    if st.query_params.get(name) != value:
        st.query_params[name] = value
    return value


def choose_newest() -> None:
    """Forget which two were chosen: a new version is there to be looked at."""
    for name in ("version", "beside"):
        st.session_state.pop(f"retrain.pair.{name}", None)
        if name in st.query_params:
            del st.query_params[name]


def _draw_compare(before: str, after: str, today: Kept | None) -> None:
    """The way to compare them anew, while that could say something else."""
    with state.open_store() as store:
        mark: Mark = (*store.changes.of_corrections(), *store.changes.of_holdout())
    if today is None or today.mark != mark:
        words = "Compare on the cases that are held out now"
        if st.button(words, key="retrain.pair.compare", icon=":material/balance:"):
            _compare(before, after, mark)
            st.rerun()
    if problem := st.session_state.pop(PROBLEM, ""):
        st.error(escaped(problem))


def _compare(before: str, after: str, mark: Mark) -> None:
    try:
        with st.spinner("Asking both of them"), state.open_store() as store:
            found: dict[str, Any] = compare(store, state.home(), before, after)
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)
        return
    keep(_name(before, after), found, mark, time.time())
