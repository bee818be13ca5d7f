"""A roster as a table, and the form in which one is written: a row for each role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import streamlit as st

from components.widgets.controls import draw_button
from components.widgets.html import Html, element, join_html
from components.widgets.wording import escape_markdown
from core.agents.roster_files import DEBATERS, HIGHEST_PRICE, LONGEST, PANELISTS, TEMPERATURE, WHOLE
from core.agents.rosters import (
    DEBATER_MAX_TOKENS,
    HIGH_TEMPERATURE,
    LOW_TEMPERATURE,
    ROSTER_DESCRIPTIONS,
    WRITER_MAX_TOKENS,
    make_single_model_roster,
)
from core.llm.call import shown_address
from core.llm.limits import price_of
from core.llm.prompting import LANGUAGES, PromptBook
from core.schema.rosters import (
    BUILT_IN_READERS,
    PANEL_READERS,
    AgentConfig,
    DebaterConfig,
    RosterConfig,
)

ABOUT_ROLES = (
    "A role without a model is built in; debaters and panel members then say which reader "
    "plays them. The panel's members mark words by themselves and vote on what the others "
    "mark. A model for the retriever is one for embeddings; one for the image reader must "
    "take images."
)
MILLION = 1_000_000
READER_WORDS: dict[str, str] = {
    "rules": "built-in value checker",
    "overlap": "built-in overlap reader",
    "entailment": "built-in entailment reader",
    "words": "built-in span reader",
}
PROMPTS: dict[str, list[str]] = {
    "segmenter": ["segment"],
    "tool picker": ["pick_tool"],
    "reflector": ["reflect"],
    "image reader": ["image_question", "image_reading"],
    "context writer": ["context"],
    "debater": ["debate"],
    "judge": ["judge"],
    "span extractor": ["spans"],
    "span adjudicator": ["span_vote"],
    "span panel": ["panel_spans", "panel_votes"],
}
HEADS = ("Role", "Played by", "Address", "Temp.", "Tokens", "Price", "Prompt")
NONE = "–"
LINE = "1px solid var(--cp-line)"
# A wide table scrolls within itself, so that a narrow screen keeps the rest of the page in sight.
AROUND = "overflow-x: auto; margin-bottom: 0.5rem"
TABLE = "border-collapse: collapse; width: 100%; font-size: 0.87rem"
CELL = f"padding: 5px 10px 5px 0; border-bottom: {LINE}; vertical-align: top; text-align: start"
NAME = "min-width: 10rem; overflow-wrap: anywhere"
QUIET = "color: var(--cp-quiet); font-size: 0.92em"


def html_table_of(heads: Sequence[str], rows: Sequence[Sequence[str | Html]]) -> Html:
    """A plain table; the first cell of each row is its heading."""
    head = element("tr", *(element("th", name, style=f"{CELL}; {QUIET}") for name in heads))
    body = [
        element(
            "tr",
            element("th", first, style=f"{CELL}; font-weight: 600"),
            *(element("td", cell, style=CELL) for cell in rest),
        )
        for first, *rest in rows
    ]
    inside = element("table", element("thead", head), element("tbody", *body), style=TABLE)
    return element("div", inside, style=AROUND)


def roster_table(roster: RosterConfig, book: PromptBook) -> Html:
    """Every role of the roster as a row; `book` holds the prompts in force."""
    rows: list[list[str | Html]] = []
    debaters = 0
    for role, agent in roster.agents_by_role():
        has_text = not agent.is_built_in and role != "retriever"
        reader = agent.reader
        if role.startswith("debater "):  # built-in readers take turns where none is named
            reader, debaters = (
                reader or BUILT_IN_READERS[debaters % len(BUILT_IN_READERS)],
                debaters + 1,
            )
        rows.append(
            [
                capitalize_role(role),
                element("div", agent.model or READER_WORDS.get(reader, "built-in"), style=NAME),
                NONE if agent.is_built_in else shown_address(agent),
                f"{agent.temperature:g}" if has_text else NONE,
                f"{agent.max_tokens:,}" if has_text else NONE,
                _price_words(agent),
                _prompt_cell(role, book) if has_text else NONE,
            ]
        )
    return html_table_of(HEADS, rows)


def capitalize_role(role: str) -> str:
    """A role's name at the beginning of a line."""
    return role[:1].upper() + role[1:]


def _price_words(agent: AgentConfig) -> str:
    if agent.is_built_in:
        return NONE
    if (price := price_of(agent)) is None:
        return "unknown"
    per_in, per_out = price.per_token_in * MILLION, price.per_token_out * MILLION
    if not per_in and not per_out:
        return "free"
    return f"${per_in:,.6g} in, ${per_out:,.6g} out, a million tokens"


def _prompt_cell(role: str, book: PromptBook) -> Html:
    """Each prompt of the role by name, with the hashes by which traces name its versions."""
    kind = next((one for one in ("debater", "span panel") if role.startswith(f"{one} ")), role)
    lines: list[Html] = []
    for name in PROMPTS[kind]:
        prompts = (book.prompt(name, language) for language in LANGUAGES)
        versions = " · ".join(
            f"{one.language} {one.hash}{' (edited)' if one.is_edited else ''}" for one in prompts
        )
        small = element("span", versions, style=f"{QUIET}; white-space: nowrap")
        lines.append(element("div", f"{name} ", small))
    return join_html(lines)


KEY = "rosters.edit."
DRAFT = "rosters.draft"  # {"fixed", "seen", "prompts", "rows", "typed", "round"}
REFUSED = "rosters.refused"
DEBATER, PANELIST = "Debater ", "Span panel "
BEFORE = 6  # roles before the debaters
SILENT = ("Retriever", "Segmenter")  # they stay as they are when one model gets every role
TEXTS: dict[str, list[str]] = {
    "model": ["Model", "provider/model as litellm names it, e.g. openai/gpt-4o-mini"],
    "api_base": ["Address", "Of an OpenAI-compatible server, usually ending in /v1; else empty"],
    "key_name": ["Name of its key", "E.g. OPENAI_API_KEY; empty for the usual one; never the key"],
}
NUMBER_WORDS: dict[str, list[str]] = {
    "max_tokens": ["Longest reply (tokens)", "A debate turn in the paper has 100"],
    "window": ["Context window (tokens)", "How much the model reads; 0: as litellm lists it"],
    "seconds": ["Longest wait for a reply (seconds)", "Then the call counts as failed"],
    "temperature": ["Temperature", "0 gives much the same answer each time"],
    "price_in": ["Price in ($ a million tokens)", "Empty: as litellm lists it; 0: free"],
    "price_out": ["Price out ($ a million tokens)", "Empty: as litellm lists it; 0: free"],
}
PRICES = (0.0, HIGHEST_PRICE)
BOUNDS = {**WHOLE, "temperature": TEMPERATURE, "price_in": PRICES, "price_out": PRICES}


def begin_form(roster: RosterConfig, *, fixed: str = "", seen: int = 0) -> None:
    """Open the form, from a callback; `fixed` and `seen` name the kept version that is changed."""
    if DRAFT in st.session_state:
        return  # a double click; what is being written stays
    st.session_state[DRAFT] = {"fixed": fixed, "seen": seen, "prompts": roster.prompts, "round": 0}
    values: dict[str, Any] = {
        "name": roster.name,
        "words": roster.words,
        "sees": roster.panel_sees_evidence,
        "debaters": len(roster.debaters),
        "panel": len(roster.span_panel),
        # The judge's, so that no address is wiped by a field that was never looked at.
        **{f"all.{name}": getattr(roster.judge, name) for name in TEXTS},
    }
    for name, value in values.items():
        st.session_state[f"{KEY}{name}"] = value
    debaters = [_row(f"{DEBATER}{n}", d.seat, d.name) for n, d in enumerate(roster.debaters, 1)]
    rows = [
        _row(capitalize_role(role), s)
        for role, s in roster.agents_by_role()
        if not role.startswith("debater ")
    ]
    _put([*rows[:BEFORE], *debaters, *rows[BEFORE:]])


def _row(role: str, agent: AgentConfig, name: str = "") -> dict[str, Any]:
    """A role in the form; what a built-in one does not say is what its role has (CEDA 5.2)."""
    if agent.is_built_in and role.startswith((DEBATER, PANELIST)):
        place = int(role.split()[-1]) - 1
        readers = BUILT_IN_READERS if role.startswith(DEBATER) else PANEL_READERS
        agent = replace(agent, reader=agent.reader or readers[place % len(readers)],
                       max_tokens=WRITER_MAX_TOKENS)  # fmt: skip
        if role.startswith(DEBATER):
            agent = replace(
                agent,
                temperature=(LOW_TEMPERATURE, HIGH_TEMPERATURE)[place % 2],
                max_tokens=DEBATER_MAX_TOKENS,
            )
    return {"role": role, "name": name, **asdict(agent)}


def _put(rows: list[dict[str, Any]]) -> None:
    draft = st.session_state[DRAFT]
    st.session_state[DRAFT] = draft | {"rows": rows, "typed": rows, "round": draft["round"] + 1}
    st.session_state.pop(REFUSED, None)


def _editor_key() -> str:
    return f"{KEY}seats.{st.session_state[DRAFT]['round']}"


def _typed_rows() -> list[dict[str, Any]]:
    """The rows as they stand in the editor, also those of a cell that was left just now."""
    draft = st.session_state[DRAFT]
    edits = st.session_state.get(_editor_key())
    if edits is None:  # the page was left, and the editor with it
        return list(draft["typed"])
    return [row | edits["edited_rows"].get(n, {}) for n, row in enumerate(draft["rows"])]


def form_text(name: str) -> str:
    """What stands in a text field, by its key after `KEY`."""
    return str(st.session_state.get(f"{KEY}{name}") or "").strip()


def typed_sheet() -> RosterConfig:
    """The roster as it stands in the form; `check_roster` says whether it can be kept."""
    rows = _typed_rows()
    seats = {row["role"]: _seat(row) for row in rows}
    single: dict[str, Any] = {
        role.lower().replace(" ", "_"): agent
        for role, agent in seats.items()
        if not role.startswith((DEBATER, PANELIST))
    }
    debaters = [row for row in rows if row["role"].startswith(DEBATER)]
    return RosterConfig(
        form_text("name"),
        form_text("words"),
        debaters=tuple(
            DebaterConfig(str(row["name"] or "").strip(), seats[row["role"]]) for row in debaters
        ),
        prompts=st.session_state[DRAFT]["prompts"],
        span_panel=tuple(agent for role, agent in seats.items() if role.startswith(PANELIST)),
        panel_sees_evidence=bool(st.session_state.get(f"{KEY}sees", True)),
        **single,
    )


def _seat(row: dict[str, Any]) -> AgentConfig:
    typed: dict[str, Any] = {name: str(row[name] or "").strip() for name in TEXTS}
    if not typed["model"]:
        return AgentConfig(reader=row["reader"] or "")
    for name in NUMBER_WORDS:
        if row[name] is not None:  # else what is usual
            typed[name] = int(row[name]) if name in WHOLE else float(row[name])
    return AgentConfig(**typed)


def draw_form() -> None:
    """The fields of the roster that is being written."""
    fixed = st.session_state[DRAFT]["fixed"]
    if fixed:
        st.markdown(
            f"**Change “{escape_markdown(fixed)}”**  \nThe version before stays in its history."
        )
    else:
        st.markdown("**A model set of your own**")
        st.text_input("Name", key=f"{KEY}name", max_chars=LONGEST["name"], persist_state="session")
    st.text_input(
        "Description", key=f"{KEY}words", max_chars=LONGEST["words"], persist_state="session"
    )
    with st.expander("One model for all speaking roles", icon=":material/group:"):
        for name, (label, words) in TEXTS.items():
            st.text_input(label, key=f"{KEY}all.{name}", help=words, persist_state="session")
        draw_button("Use it for all roles", "rosters.everywhere", _give_everywhere)
        st.caption("Retrieval and the cutting into statements stay as they are.")
    left, right = st.columns(2)
    sizes = {"debaters": range(DEBATERS[0], DEBATERS[1] + 1),
             "panel": (0, *range(PANELISTS[0], PANELISTS[1] + 1))}  # fmt: skip
    left.selectbox("Debaters", sizes["debaters"], key=f"{KEY}debaters", on_change=_resize,
                   persist_state="session")  # fmt: skip
    right.selectbox("Members of the panel that marks words", sizes["panel"], key=f"{KEY}panel",
                    format_func=lambda n: str(n) if n else "no panel", on_change=_resize,
                    persist_state="session")  # fmt: skip
    if st.session_state.get(f"{KEY}panel"):
        st.checkbox(
            "The panel's models see the evidence", key=f"{KEY}sees", persist_state="session"
        )
    _draw_seats()


def _draw_seats() -> None:
    column, draft = st.column_config, st.session_state[DRAFT]
    columns: dict[str, Any] = {
        "role": column.TextColumn("Role", pinned=True, width="small"),
        "name": column.TextColumn("Name in the debate", help="Of a debater"),
        "reader": column.SelectboxColumn(
            "Built-in reader",
            options=PANEL_READERS,
            format_func=lambda reader: READER_WORDS.get(str(reader), str(reader)),
        ),
        **{n: column.TextColumn(label, help=told) for n, (label, told) in TEXTS.items()},
    }
    for name, (label, told) in NUMBER_WORDS.items():
        low, high = BOUNDS[name]
        step = 1 if name in WHOLE else None
        columns[name] = column.NumberColumn(
            label, help=told, min_value=low, max_value=high, step=step
        )
    if _editor_key() not in st.session_state:
        draft["rows"] = draft["typed"]
    st.data_editor(
        draft["rows"],
        key=_editor_key(),
        hide_index=True,
        height="content",
        disabled=("role",),
        column_order=list(columns),
        column_config=columns,
    )
    st.caption(ABOUT_ROLES)
    draft["typed"] = _typed_rows()


def _resize() -> None:
    """Have as many debaters and panel members as were chosen: the last ones come and go."""
    rows = _typed_rows()
    sized: dict[str, list[dict[str, Any]]] = {}
    for prefix, name in ((DEBATER, "debaters"), (PANELIST, "panel")):
        wanted = range(1, int(st.session_state[f"{KEY}{name}"] or 0) + 1)
        known = {row["role"]: row for row in rows if row["role"].startswith(prefix)}
        roles = [f"{prefix}{number}" for number in wanted]
        sized[prefix] = [known.get(role) or _row(role, AgentConfig()) for role in roles]
    single = [row for row in rows if not row["role"].startswith((DEBATER, PANELIST))]
    _put([*single[:BEFORE], *sized[DEBATER], *single[BEFORE:], *sized[PANELIST]])


def _give_everywhere() -> None:
    """Put one model in every speaking role; window and prices were another model's."""
    given: dict[str, Any] = {name: form_text(f"all.{name}") for name in TEXTS}
    if not given["model"]:
        st.toast("Write the model's name first.", icon=":material/edit:")
        return
    given |= {"window": 0, "price_in": None, "price_out": None}
    _put([row if row["role"] in SILENT else row | given for row in _typed_rows()])
    if (
        form_text("words") in ROSTER_DESCRIPTIONS.values()
    ):  # they tell of the models that are gone now
        told = make_single_model_roster(given["model"], given["api_base"]).words
        st.session_state[f"{KEY}words"] = told[: LONGEST["words"]]
    st.toast(
        f"Every speaking role is {escape_markdown(given['model'])} now.", icon=":material/check:"
    )


def close_form() -> None:
    """Close the form."""
    for name in [str(name) for name in st.session_state if str(name).startswith(KEY)]:
        del st.session_state[name]
    st.session_state.pop(DRAFT, None)
    st.session_state.pop(REFUSED, None)
