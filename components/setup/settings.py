"""Settings: the person, keys, web search, reader, limits, and what works here.

The fields for keys stand on other pages too. No field shows a key that was typed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components.app import login, state
from components.app.frame import ask_name, has_role
from components.widgets.controls import draw_button, show_problem, show_problems, store_problem
from components.widgets.html import draw_html, html_table
from components.widgets.wording import escape_markdown
from core.agents.roster_files import NAME_OF_KEY
from core.agents.rosters import list_rosters
from core.baseline import entailment as reader
from core.llm.keys import ADDRESS_KEY, SEARCH_KEY, Keys, key_names
from core.pipeline.doctor import run_checks
from core.review.people import normalize_member_name, rename_person, switch_person
from core.runtime.concurrency import StopSignal
from core.runtime.config import SETTINGS
from core.runtime.errors import NotAllowed
from core.schema.records import Plan
from core.schema.rosters import RosterConfig
from core.store import Store
from core.tools.web_search import (
    PROVIDER_RECIPIENTS,
    PROVIDERS,
    WebSearchChoice,
    load_web_choice,
    save_web_choice,
)

ABOUT_KEYS = (
    "A key typed here stays in this browser session's memory: it is never stored, logged or "
    "shown. To keep one, set it in the environment or in .streamlit/secrets.toml and start "
    "again."
)
ABOUT_WEB_SEARCH = (
    "An audit's search looks through a project's own documents. Where these hardly speak of a"
    " statement it can ask the web too, through one provider, for all projects. It reads the "
    "provider's snippets, or how Wikipedia's articles begin; the pages that are found are "
    "never fetched. How many searches a run may send, and how long results are kept, stands "
    "under Limits."
)
ABOUT_ADDRESS = (
    "This one address may lie on this computer or in your own network; nothing else inside is"
    " ever asked. Its settings.yml must list json under search.formats."
)
ABOUT_READERS = (
    "What reads a statement against the evidence, on this computer. You may bring any model "
    "that says whether a text supports a claim, or that marks unsupported words: it is "
    "exported once. docs/readers.md names some that are worth downloading."
)


def draw_plan_keys(plan: Plan, page: str) -> None:
    """Draw a field for each missing key of the plan's roster."""
    if plan.sheet is not None:
        draw_keys_of([plan.sheet], page)


def draw_keys_of(rosters: Sequence[RosterConfig], page: str) -> None:
    """Draw a field for each missing key of the rosters, and a button to forget each typed one.

    `page` begins the fields' widget keys.
    """
    keys = state.get_keys()
    agents = [agent for roster in rosters for _, agent in roster.agents_by_role()]
    missing = list(dict.fromkeys(name for agent in agents for name in keys.missing_for(agent)))
    names = dict.fromkeys(name for agent in agents for name in key_names(agent))
    if missing:
        st.info(
            escape_markdown(
                f"{'This model set needs' if len(rosters) == 1 else 'These model sets need'} "
                f"{', '.join(missing)}. Type it for this session (it is never stored, logged or "
                "shown), or set it in the environment or in .streamlit/secrets.toml and start "
                "again."
            ),
            icon=":material/key:",
        )
    for name in missing:
        _draw_key_field(name, page)
    for name in names:
        if keys.where(name) == "typed":
            _draw_forget_button(name, page)


def _draw_forget_button(name: str, page: str) -> None:
    draw_button(
        escape_markdown(f"Forget {name}"),
        f"{page}.forget.{name}",
        lambda: st.session_state.pop(f"{state.KEY_FIELD_PREFIX}{name}", None),
        icon="delete",
        help="Typed in this session. Forget it to type another.",
    )


def _draw_key_field(name: str, page: str) -> None:
    """Draw a field for a key; what is typed is kept in the session, and the field emptied."""
    field = f"{page}.key.{name}"

    def keep_key() -> None:
        typed = str(st.session_state.get(field) or "").strip()
        st.session_state[field] = ""
        if typed:
            st.session_state[f"{state.KEY_FIELD_PREFIX}{name}"] = typed
            st.toast(f"{escape_markdown(name)} is set for this session.", icon=":material/key:")

    st.text_input(
        # A usual name needs no escapes, which screen readers would read out.
        name if NAME_OF_KEY.fullmatch(name.strip("_")) else escape_markdown(name),
        type="default" if name == "AWS_REGION_NAME" else "password",  # a region is no secret
        key=field,
        on_change=keep_key,
        placeholder="for this session only",
        autocomplete="off",
    )


KEY_FIELDS_PER_ROW = 3
KEY_PLACES: dict[str, str] = {
    "typed": "✓ typed in this session",
    "secrets": "✓ .streamlit/secrets.toml",
    "environment": "✓ environment",
}
ALIAS_PLACE = "✓ environment or secrets, under another usual name"
MISSING_KEY = "– missing"
OPTIONAL_KEY = "– none; needed only where the address asks for one"


def _list_key_users(keys: Keys) -> tuple[dict[str, list[str]], set[str], set[str]]:
    """Return the rosters that use each key, the keys that are missing, and the optional ones."""
    users: dict[str, list[str]] = {}
    missing: set[str] = set()
    optional: set[str] = set()
    with state.open_store() as store:
        rosters = list_rosters(store)
    for roster in rosters:
        for _, agent in roster.agents_by_role():
            names = key_names(agent)
            missing.update(keys.missing_for(agent))
            if agent.api_base and not names:
                names = (ADDRESS_KEY,)
                optional.add(ADDRESS_KEY)
            for name in names:
                users.setdefault(name, []).append(roster.name)
    return users, missing, optional - missing


def draw_keys() -> None:
    """Draw where each key of any roster is, never its value, and a field for each missing one."""
    keys = state.get_keys()
    users, missing, optional = _list_key_users(keys)
    if not users:
        st.caption("No model set needs a key.")
        return
    given = sum(keys.where(name) is not None for name in users)
    with st.expander(f"Keys ({given} of {len(users)} given)", icon=":material/key:"):
        _draw_key_table(keys, users, missing, optional)


def _draw_key_table(
    keys: Keys, users: dict[str, list[str]], missing: set[str], optional: set[str]
) -> None:
    rows, absent = [], []
    for name, rosters in sorted(users.items()):
        if place := keys.where(name):
            words = KEY_PLACES[place]
        elif name in missing:
            words = MISSING_KEY
        else:
            words = OPTIONAL_KEY if name in optional else ALIAS_PLACE
        if not place and words != ALIAS_PLACE:
            absent.append(name)
        rows.append((name, words, ", ".join(dict.fromkeys(rosters))))
    draw_html(html_table(("Name", "Where it is", "Model sets that use it"), rows, "cp-table"))
    for start in range(0, len(absent), KEY_FIELDS_PER_ROW):  # so that a phone keeps their order
        for name, column in zip(absent[start:], st.columns(KEY_FIELDS_PER_ROW), strict=False):
            with column:
                _draw_key_field(name, "settings")
    with st.container(horizontal=True):
        for name in state.get_typed_keys():
            _draw_forget_button(name, "settings")
    st.caption(ABOUT_KEYS)


WEB_FIELD = "settings.web"
WEB_PROBLEM, WEB_TEST_RESULT = f"{WEB_FIELD}.problem", f"{WEB_FIELD}.tried"
ABOUT_RECIPIENT = (
    "Each search sends a statement's words, which may come from your documents, to {who}."
)


def draw_web_search() -> None:
    """Draw the choice of a provider, its fields, and a button that tests the saved one."""
    st.subheader("Web search", anchor=False)
    st.caption(ABOUT_WEB_SEARCH)
    stored = WebSearchChoice()
    with show_problems(), state.open_store() as store:
        stored = load_web_choice(store)
    if not has_role("admin", "choose another provider", for_all=True):
        st.markdown(f"In use: **{escape_markdown(PROVIDERS[stored.provider])}**")
        return
    names = list(PROVIDERS)
    provider = st.selectbox(
        "Provider",
        names,
        index=names.index(stored.provider),
        format_func=PROVIDERS.__getitem__,
        key=f"{WEB_FIELD}.provider",
    )
    if provider == "google":
        _draw_google(stored)
    if provider == "searxng":
        st.text_input(
            "The server's address",
            value=stored.address,
            key=f"{WEB_FIELD}.address",
            placeholder="https://search.example.org",
            help=ABOUT_ADDRESS,
        )
    if provider:
        who = PROVIDER_RECIPIENTS[provider]
        st.info(escape_markdown(ABOUT_RECIPIENT.format(who=who)), icon=":material/outgoing_mail:")
    with st.container(horizontal=True):
        draw_button("Save", f"{WEB_FIELD}.save", _save_web_search, icon="save")
        if stored.provider:
            about = "One search for “Wikipedia” at the provider that is saved."
            draw_button(
                "Test", f"{WEB_FIELD}.test", _test_web_search, icon="network_check", help=about
            )
    show_problem(WEB_PROBLEM)
    if result := st.session_state.pop(WEB_TEST_RESULT, None):
        works, words = result
        (st.success if works else st.error)(escape_markdown(words))


def _draw_google(stored: WebSearchChoice) -> None:
    st.text_input(
        "The engine's cx",
        value=stored.cx,
        key=f"{WEB_FIELD}.cx",
        help="From the engine's control panel at programmablesearchengine.google.com.",
    )
    place = state.get_keys().where(SEARCH_KEY)
    if place is None:
        _draw_key_field(SEARCH_KEY, WEB_FIELD)
        return
    st.caption(escape_markdown(f"{SEARCH_KEY}: {KEY_PLACES[place]}"))
    if place == "typed":
        _draw_forget_button(SEARCH_KEY, WEB_FIELD)


def _save_web_search() -> None:
    typed = {
        name: str(st.session_state.get(f"{WEB_FIELD}.{name}") or "")
        for name in ("provider", "address", "cx")
    }
    with store_problem(WEB_PROBLEM):
        with state.open_store() as store, store.writing():
            _require_admin(store, "choose a web search")
            save_web_choice(store, WebSearchChoice(**typed))
        st.toast("Saved.", icon=":material/check:")


def _test_web_search() -> None:
    """Search once; only a click does it, never a rerun."""
    from core.tools.web_search import try_search

    with store_problem(WEB_PROBLEM):
        with state.open_store() as store:
            _require_admin(store, "test the web search")
            choice = load_web_choice(store)
        st.session_state[WEB_TEST_RESULT] = try_search(choice, state.get_keys(), StopSignal())


READER_FIELD = "settings.reader"
READER_PROBLEM = f"{READER_FIELD}.problem"
UNCALIBRATED = "This reader is not calibrated, so its probabilities may be off."


def draw_readers() -> None:
    """Draw the choice of a reader, what is known of it, and a field to import another."""
    st.subheader("Reader", anchor=False)
    st.caption(ABOUT_READERS)
    with state.open_store() as store:
        used = reader.load_reader_choice(store)
    names = [reader.SHIPPED_READER, *reader.list_reader_folders(state.home_folder())]
    if used not in names:
        st.error(
            escape_markdown(f"The reader “{used}” is not in the home any more; choose another."),
            icon=":material/error:",
        )
    if not has_role("admin", "change the reader", for_all=True):
        _draw_reader_card(used)
        return
    st.selectbox(
        "Checks read with",
        names,
        index=names.index(used) if used in names else None,
        format_func=lambda name: (
            "the reader that ships (English)" if name == reader.SHIPPED_READER else name
        ),
        key=f"{READER_FIELD}.name",
        on_change=_choose_reader,
    )
    _draw_reader_card(used)
    st.text_input(
        "Bring a reader",
        key=f"{READER_FIELD}.source",
        placeholder="organisation/model on the Hugging Face Hub, or a folder",
    )
    draw_button("Import", f"{READER_FIELD}.import", _import_reader, icon="download")
    show_problem(READER_PROBLEM)


def _draw_reader_card(name: str) -> None:
    folder = reader.list_reader_folders(state.home_folder()).get(name)
    if folder is None:
        return
    with show_problems():
        card = reader.read_reader_card(folder)
        calibration = reader.read_reader_calibration(folder)
        st.caption(escape_markdown(f"{card['architecture']} from {card['source']}"))
        if calibration is None:
            st.warning(escape_markdown(UNCALIBRATED), icon=":material/tune:")
            st.code(f"python -m core reader calibrate {name} --decided-here", language="shell")
            return
        measured = calibration["measured"]["all"]
        st.caption(
            f"Calibrated on {measured['n']:,} statements: AUROC {measured['auroc']:.3f}, "
            f"ECE {measured['ece']:.3f}."
        )


def _require_admin(store: Store, what: str) -> None:
    store.projects.require_for_all(state.get_person(store), "admin", what)


def _choose_reader() -> None:
    name = str(st.session_state.get(f"{READER_FIELD}.name") or "")
    with store_problem(READER_PROBLEM):
        with state.open_store() as store:
            _require_admin(store, "change the reader")
            reader.choose_reader(store, state.home_folder(), name)
        st.toast("New checks read with it.", icon=":material/check:")


def _import_reader() -> None:
    source = str(st.session_state.get(f"{READER_FIELD}.source") or "").strip()
    with store_problem(READER_PROBLEM):
        with state.open_store() as store:
            _require_admin(store, "change the reader")
        with st.spinner("Exporting the model; large ones take a minute…"):
            name = reader.import_if_new(state.home_folder(), source)
        st.session_state[f"{READER_FIELD}.source"] = ""
        st.toast(escape_markdown(f"{name} is here; choose it above."), icon=":material/check:")


def draw_person() -> None:
    """Draw the name shown on corrections; a person who logged in has it from the provider."""
    with state.open_store() as store:
        name = state.get_person(store)
    if login.is_login_required():
        st.markdown(
            f"You are logged in as **{escape_markdown(name)}**, the name shown on your corrections."
        )
        return
    if not ask_name():
        return
    typed = st.text_input(
        "Your name, as shown on your corrections", value=name, key="settings.person", max_chars=80
    )
    if typed and typed.strip() != name:
        with st.container(horizontal=True):
            draw_button("I changed my name", "settings.rename", _rename_person)
            draw_button("Someone else works here now", "settings.change", _switch_person)
        st.caption(
            "If you changed your name, your roles, drafts and claimed items go along. If someone "
            f"else works here now, they stay {escape_markdown(name)}'s, and the other begins as an "
            "annotator of this project."
        )
    show_problem("settings.person.problem")


def _typed_name() -> str:
    if login.is_login_required():
        raise NotAllowed("Whoever logged in cannot take another name; log out instead.")
    return normalize_member_name(str(st.session_state.get("settings.person") or ""))


def _switch_person() -> None:
    """Let another person work at this computer; they see no drafts of the one before."""
    with store_problem("settings.person.problem"):
        name = _typed_name()
        with state.open_store() as store:
            switch_person(store, state.get_project(store).id, name, time.time())
        state.start_session_as(name)
        st.toast(f"{escape_markdown(name)} works here now.", icon=":material/check:")


def _rename_person() -> None:
    with store_problem("settings.person.problem"):
        name = _typed_name()
        with state.open_store() as store:
            rename_person(store, state.get_person(store), name, time.time())
        st.session_state["person"] = name
        st.toast(
            f"From now on your corrections say {escape_markdown(name)}. Earlier ones keep their "
            "name, which stays among the project's people.",
            icon=":material/check:",
        )


def draw_limits() -> None:
    """Draw a field for each limit; a change is saved at once."""
    with state.open_store() as store:
        values = store.projects.settings().as_dict()
    with st.expander("Limits", icon=":material/speed:"):
        is_admin = has_role("admin", "change limits", for_all=True)
        columns = st.columns(3)
        for number, (name, about) in enumerate(SETTINGS.items()):
            columns[number % 3].number_input(
                f"{about.label} ({about.unit})", about.low, about.high, values[name], 1,
                key=f"settings.{name}", help=about.help, on_change=_save_limit, args=(name,),
                disabled=not is_admin,
            )  # fmt: skip
    show_problem("settings.problem")


def _save_limit(name: str) -> None:
    value = st.session_state.get(f"settings.{name}")
    with store_problem("settings.problem"):
        with state.open_store() as store, store.writing():
            _require_admin(store, "change limits")
            store.projects.save_setting(name, int(value or 0))
        st.toast("Saved.", icon=":material/check:")


def draw_health() -> None:
    """Draw which parts of the installation work, and what to do about the others."""
    st.subheader("What works here", anchor=False)
    st.caption(f"Everything is kept in {escape_markdown(str(state.home_folder()))}.")
    if not st.button("Run the checks", key="settings.health", icon=":material/stethoscope:"):
        return
    for item in run_checks(state.home_folder()):
        if item.works:
            st.markdown(
                f":material/check_circle: **{escape_markdown(item.name)}** · "
                f"{escape_markdown(item.words)}"
            )
        else:
            st.error(escape_markdown(f"{item.name}: {item.words}"), icon=":material/error:")
