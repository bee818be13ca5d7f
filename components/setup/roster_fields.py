"""A roster as a table, and the form for writing one: a row for each role.

What stands in the form is the roster's draft. It is kept in the session until it is saved or
discarded, so that leaving the page loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, TypedDict

import streamlit as st

from components.widgets.controls import draw_button
from components.widgets.html import Html, div, html_table, join_html
from components.widgets.wording import escape_markdown
from core.agents.roster_files import (
    DEBATERS,
    HIGHEST_PRICE,
    MAX_FIELD_CHARS,
    PANELISTS,
    TEMPERATURE,
    WHOLE,
)
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
from core.llm.prompting import LANGUAGES, TITLES, PromptBook
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
PROMPTS_BY_ROLE: dict[str, list[str]] = {
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


def render_roster(roster: RosterConfig, book: PromptBook) -> Html:
    """Return a table of the roster's roles; `book` holds the prompts in use."""
    rows: list[list[str | Html]] = []
    debaters = 0
    for role, agent in roster.agents_by_role():
        reader = agent.reader
        if role.startswith("debater "):  # built-in readers take turns where none is named
            reader = reader or BUILT_IN_READERS[debaters % len(BUILT_IN_READERS)]
            debaters += 1
        name = agent.model or READER_WORDS.get(reader, "built-in")
        writes_text = not agent.is_built_in and role != "retriever"
        player = join_html([name, div("cp-quiet", _describe_agent(agent, writes_text))])
        prompts = _describe_prompts(role, book) if writes_text else Html("")
        rows.append([capitalize_role(role), player, prompts])
    return html_table(("Role", "Played by", "Prompt"), rows, "cp-table")


def _describe_agent(agent: AgentConfig, writes_text: bool) -> str:
    """Return the agent's address, limits and price in a line; empty if it is built in."""
    if agent.is_built_in:
        return ""
    parts = [shown_address(agent)]
    if writes_text:
        parts += [f"temperature {agent.temperature:g}", f"{agent.max_tokens:,} tokens"]
    return " · ".join([*filter(None, parts), _describe_price(agent)])


def capitalize_role(role: str) -> str:
    """A role's name at the beginning of a line."""
    return role[:1].upper() + role[1:]


def _describe_price(agent: AgentConfig) -> str:
    if (price := price_of(agent)) is None:
        return "price unknown"
    per_in, per_out = price.per_token_in * MILLION, price.per_token_out * MILLION
    if not per_in and not per_out:
        return "free"
    return f"${per_in:,.6g} in, ${per_out:,.6g} out, a million tokens"


def _describe_prompts(role: str, book: PromptBook) -> Html:
    """Return the titles of the role's prompts with the hashes by which traces name versions."""
    kind = next((kind for kind in ("debater", "span panel") if role.startswith(f"{kind} ")), role)
    lines: list[Html] = []
    for name in PROMPTS_BY_ROLE[kind]:
        prompts = (book.prompt(name, language) for language in LANGUAGES)
        versions = " · ".join(
            f"{prompt.language} {prompt.hash}{' (edited)' if prompt.is_edited else ''}"
            for prompt in prompts
        )
        lines.append(join_html([TITLES[name], div("cp-quiet", versions)]))
    return join_html(lines)


FIELD_PREFIX = "rosters.edit."
DRAFT = "rosters.draft"  # holds a RosterDraft
FORM_PROBLEM = "rosters.refused"
DEBATER, PANELIST = "Debater ", "Span panel "
ROWS_BEFORE_DEBATERS = 6
ROLES_NOT_SPEAKING = ("Retriever", "Segmenter")  # one model for all roles leaves them as they are
RosterRow = dict[str, Any]  # "role", "name" (of a debater) and the fields of AgentConfig


class RosterDraft(TypedDict):
    """The roster that is being written, apart from the fields above its table."""

    fixed: str
    """The name of the saved roster that is changed; empty for a new one."""
    seen: int
    """The number of its newest version when the form was opened."""
    prompts: str
    """The digest of the prompts for which the roster was written."""
    rows: list[RosterRow]
    """The rows that the table was drawn from."""
    typed: list[RosterRow]
    """The same rows with what was typed into them."""
    round: int
    """Part of the table's key: a new number draws the table from other rows."""


TEXT_COLUMNS: dict[str, tuple[str, str]] = {
    "model": ("Model", "provider/model as litellm names it, e.g. openai/gpt-4o-mini"),
    "api_base": ("Address", "Of an OpenAI-compatible server, usually ending in /v1; else empty"),
    "key_name": ("Name of its key", "E.g. OPENAI_API_KEY; empty for the usual one; never the key"),
}
NUMBER_COLUMNS: dict[str, tuple[str, str]] = {
    "max_tokens": ("Longest reply (tokens)", "A debate turn in the paper has 100"),
    "window": ("Context window (tokens)", "How much the model reads; 0: as litellm lists it"),
    "seconds": ("Longest wait for a reply (seconds)", "Then the call counts as failed"),
    "concurrency": ("Calls at once", "How many its server answers at once; 0: as the server tells"),
    "temperature": ("Temperature", "0 gives much the same answer each time"),
    "price_in": ("Price in ($ a million tokens)", "Empty: as litellm lists it; 0: free"),
    "price_out": ("Price out ($ a million tokens)", "Empty: as litellm lists it; 0: free"),
}
PRICE_BOUNDS = (0.0, HIGHEST_PRICE)
NUMBER_BOUNDS = {
    **WHOLE,
    "temperature": TEMPERATURE,
    "price_in": PRICE_BOUNDS,
    "price_out": PRICE_BOUNDS,
}


def open_form(roster: RosterConfig, *, fixed: str = "", seen: int = 0) -> None:
    """Open the form on a roster; call it in a callback.

    `fixed` is the name of the saved roster that is changed, `seen` the number of its newest
    version. A form that is open stays as it is.
    """
    if DRAFT in st.session_state:
        return  # a double click
    st.session_state[DRAFT] = RosterDraft(
        fixed=fixed, seen=seen, prompts=roster.prompts, rows=[], typed=[], round=0
    )
    values: dict[str, Any] = {
        "name": roster.name,
        "words": roster.words,
        "sees": roster.panel_sees_evidence,
        "debaters": len(roster.debaters),
        "panel": len(roster.span_panel),
        # Using one model for all roles then starts from the judge's, its address included.
        **{f"all.{name}": getattr(roster.judge, name) for name in TEXT_COLUMNS},
    }
    for name, value in values.items():
        st.session_state[f"{FIELD_PREFIX}{name}"] = value
    debaters = [
        _make_row(f"{DEBATER}{number}", debater.seat, debater.name)
        for number, debater in enumerate(roster.debaters, 1)
    ]
    others = [
        _make_row(capitalize_role(role), agent)
        for role, agent in roster.agents_by_role()
        if not role.startswith("debater ")
    ]
    _set_rows([*others, *debaters])


def _make_row(role: str, agent: AgentConfig, name: str = "") -> RosterRow:
    """Return a role's row; a built-in agent gets the limits usual for its role (CEDA 5.2)."""
    if agent.is_built_in and role.startswith((DEBATER, PANELIST)):
        place = int(role.split()[-1]) - 1
        readers = BUILT_IN_READERS if role.startswith(DEBATER) else PANEL_READERS
        reader = agent.reader or readers[place % len(readers)]
        agent = replace(agent, reader=reader, max_tokens=WRITER_MAX_TOKENS)
        if role.startswith(DEBATER):
            temperature = (LOW_TEMPERATURE, HIGH_TEMPERATURE)[place % 2]
            agent = replace(agent, temperature=temperature, max_tokens=DEBATER_MAX_TOKENS)
    return {"role": role, "name": name, **asdict(agent)}


def _set_rows(rows: Sequence[RosterRow]) -> None:
    """Draw the table from these rows: in the order of a check, the panel last."""
    debaters, panel, others = _group_rows(rows)
    before, after = others[:ROWS_BEFORE_DEBATERS], others[ROWS_BEFORE_DEBATERS:]
    draft: RosterDraft = st.session_state[DRAFT]
    draft["rows"] = draft["typed"] = [*before, *debaters, *after, *panel]
    draft["round"] += 1
    st.session_state.pop(FORM_PROBLEM, None)


def _group_rows(
    rows: Sequence[RosterRow],
) -> tuple[list[RosterRow], list[RosterRow], list[RosterRow]]:
    """Return the rows of debaters, of panel members, and of all other roles."""
    debaters = [row for row in rows if row["role"].startswith(DEBATER)]
    panel = [row for row in rows if row["role"].startswith(PANELIST)]
    others = [row for row in rows if not row["role"].startswith((DEBATER, PANELIST))]
    return debaters, panel, others


def _rows_key() -> str:
    return f"{FIELD_PREFIX}seats.{st.session_state[DRAFT]['round']}"


def _read_rows() -> list[RosterRow]:
    """Return the rows with what was typed, also into the cell that was left just now."""
    draft: RosterDraft = st.session_state[DRAFT]
    edits = st.session_state.get(_rows_key())
    if edits is None:  # the page was left, and Streamlit dropped the table's edits
        return list(draft["typed"])
    return [row | edits["edited_rows"].get(n, {}) for n, row in enumerate(draft["rows"])]


def _read_field(name: str) -> str:
    return str(st.session_state.get(f"{FIELD_PREFIX}{name}") or "").strip()


def read_form() -> RosterConfig:
    """Return the roster in the form; `check_roster` says whether it can be saved."""
    debaters, panel, others = _group_rows(_read_rows())
    single_roles: dict[str, Any] = {
        row["role"].lower().replace(" ", "_"): _read_agent(row) for row in others
    }
    return RosterConfig(
        _read_field("name"),
        _read_field("words"),
        debaters=tuple(
            DebaterConfig(str(row["name"] or "").strip(), _read_agent(row)) for row in debaters
        ),
        prompts=st.session_state[DRAFT]["prompts"],
        span_panel=tuple(map(_read_agent, panel)),
        panel_sees_evidence=bool(st.session_state.get(f"{FIELD_PREFIX}sees", True)),
        **single_roles,
    )


def _read_agent(row: RosterRow) -> AgentConfig:
    values: dict[str, Any] = {name: str(row[name] or "").strip() for name in TEXT_COLUMNS}
    if not values["model"]:
        return AgentConfig(reader=row["reader"] or "")
    for name in NUMBER_COLUMNS:
        if row[name] is not None:  # an empty cell means the default
            values[name] = int(row[name]) if name in WHOLE else float(row[name])
    return AgentConfig(**values)


def draw_form() -> None:
    """Draw the fields of the roster that is being written."""
    if fixed := st.session_state[DRAFT]["fixed"]:
        st.markdown(
            f"**Change “{escape_markdown(fixed)}”**  \nThe version before stays in its history."
        )
    else:
        st.markdown("**A model set of your own**")
        _draw_text_field("Name", "name", max_chars=MAX_FIELD_CHARS["name"])
    _draw_text_field("Description", "words", max_chars=MAX_FIELD_CHARS["words"])
    with st.expander("One model for all speaking roles", icon=":material/group:"):
        for name, (label, about) in TEXT_COLUMNS.items():
            _draw_text_field(label, f"all.{name}", help=about)
        draw_button("Use it for all roles", "rosters.everywhere", _use_model_for_all_roles)
        st.caption("Retrieval and the cutting into statements stay as they are.")
    left, right = st.columns(2)
    options: dict[str, Any] = {"on_change": _resize, "persist_state": "session"}
    left.selectbox(
        "Debaters", range(DEBATERS[0], DEBATERS[1] + 1), key=f"{FIELD_PREFIX}debaters", **options
    )
    right.selectbox(
        "Members of the panel that marks words",
        (0, *range(PANELISTS[0], PANELISTS[1] + 1)),
        key=f"{FIELD_PREFIX}panel",
        format_func=lambda members: str(members) if members else "no panel",
        **options,
    )
    if st.session_state.get(f"{FIELD_PREFIX}panel"):
        label = "The panel's models see the evidence"
        st.checkbox(label, key=f"{FIELD_PREFIX}sees", persist_state="session")
    _draw_rows()


def _draw_text_field(label: str, name: str, **options: Any) -> None:
    st.text_input(label, key=f"{FIELD_PREFIX}{name}", persist_state="session", **options)


def _draw_rows() -> None:
    """Draw the table of roles, whose cells can be edited."""
    column = st.column_config
    draft: RosterDraft = st.session_state[DRAFT]
    columns: dict[str, Any] = {
        "role": column.TextColumn("Role", pinned=True, width=125),
        "name": column.TextColumn("Name in the debate", help="Of a debater"),
        "reader": column.SelectboxColumn(
            "Built-in reader",
            options=PANEL_READERS,
            format_func=lambda reader: READER_WORDS.get(str(reader), str(reader)),
        ),
    }
    for name, (label, about) in TEXT_COLUMNS.items():
        columns[name] = column.TextColumn(label, help=about)
    for name, (label, about) in NUMBER_COLUMNS.items():
        low, high = NUMBER_BOUNDS[name]
        step = 1 if name in WHOLE else None
        columns[name] = column.NumberColumn(
            label, help=about, min_value=low, max_value=high, step=step
        )
    if _rows_key() not in st.session_state:
        draft["rows"] = draft["typed"]
    st.data_editor(
        draft["rows"],
        key=_rows_key(),
        hide_index=True,
        height="content",
        disabled=("role",),
        column_order=list(columns),
        column_config=columns,
        placeholder="",
    )
    st.caption(ABOUT_ROLES)
    draft["typed"] = _read_rows()


def _resize() -> None:
    """Have as many debaters and panel members as were chosen: the last ones come and go."""
    debaters, panel, others = _group_rows(_read_rows())
    for prefix, name, members in ((DEBATER, "debaters", debaters), (PANELIST, "panel", panel)):
        wanted = int(st.session_state[f"{FIELD_PREFIX}{name}"] or 0)
        members += [
            _make_row(f"{prefix}{number}", AgentConfig())
            for number in range(len(members) + 1, wanted + 1)
        ]
        del members[wanted:]
    _set_rows([*others, *debaters, *panel])


def _use_model_for_all_roles() -> None:
    """Put the chosen model into every speaking role; its window and prices are to be found anew."""
    chosen: dict[str, Any] = {name: _read_field(f"all.{name}") for name in TEXT_COLUMNS}
    model = chosen["model"]
    if not model:
        st.toast("Write the model's name first.", icon=":material/edit:")
        return
    chosen |= {"window": 0, "price_in": None, "price_out": None}
    _set_rows([row if row["role"] in ROLES_NOT_SPEAKING else row | chosen for row in _read_rows()])
    if _read_field("words") in ROSTER_DESCRIPTIONS.values():  # it describes the former models
        words = make_single_model_roster(model, chosen["api_base"]).words
        st.session_state[f"{FIELD_PREFIX}words"] = words[: MAX_FIELD_CHARS["words"]]
    st.toast(f"Every speaking role is {escape_markdown(model)} now.", icon=":material/check:")


def close_form() -> None:
    """Close the form and drop what was typed."""
    for name in [str(name) for name in st.session_state if str(name).startswith(FIELD_PREFIX)]:
        del st.session_state[name]
    st.session_state.pop(DRAFT, None)
    st.session_state.pop(FORM_PROBLEM, None)
