"""What surrounds every page: styles, menu, login, the list of shortcuts, error messages.

Pages without an icon are not in the menu; links lead to them.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn
from urllib.parse import unquote, urlencode, urlsplit

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from components.app import login, state
from components.app.login import remember_in_browser
from components.app.sample import TARGET, draw_sample_bar, follow_link
from components.widgets.controls import (
    ASSETS,
    LINK_PARAMETERS,
    draw_link,
    get_component,
    show_problem,
    show_problems,
    store_problem,
)
from components.widgets.wording import clip_text, escape_markdown
from core.review.people import (
    can_see_answers,
    ensure_project,
    find_hidden_cases,
    name_guest,
    normalize_member_name,
)
from core.runtime.errors import NotAllowed, ReviewError
from core.schema.records import Case, PersonRole, Project
from core.store import open_store
from core.store.projects import GUEST, has_rank

# By section: each page's script, title and icon name.
MENU: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Check": (
        ("pages/check/new.py", "New check", "add"),
        ("pages/check/history.py", "History", "history"),
        ("pages/check/batch.py", "Batch check", "table_rows"),
        ("pages/check/compare.py", "Compare", "compare"),
        ("pages/check/table.py", "Checked table", ""),
        ("pages/check/run.py", "Run", ""),
        ("pages/check/replay.py", "Replay", ""),
    ),
    "Review": (
        ("pages/review/pending.py", "Review", "checklist"),
        ("pages/review/label.py", "Label", ""),
        ("pages/review/adjudicate.py", "Adjudicate", "gavel"),
        ("pages/review/adjudicate_case.py", "Adjudicate a case", ""),
        ("pages/review/agreement.py", "Agreement", "handshake"),
    ),
    "Learn": (
        ("pages/learn/retrain.py", "Retrain", "model_training"),
        ("pages/learn/calibration.py", "Calibration", "speed"),
        ("pages/learn/spans.py", "Span tuning", "border_color"),
        ("pages/learn/reliability.py", "Reliability", "balance"),
        ("pages/measure/benchmarks.py", "Benchmarks", "leaderboard"),
        ("pages/measure/benchmark.py", "Benchmark", ""),
    ),
    "Set up": (
        ("pages/setup/project.py", "Project", "group"),
        ("pages/setup/library.py", "Library", "folder"),
        ("pages/setup/exchange.py", "Import / export", "swap_vert"),
        ("pages/setup/settings.py", "Settings", "settings"),
    ),
}
DEFAULT_PAGE = "pages/check/new.py"
HISTORY_PAGE = "pages/check/history.py"
MAX_NAMED_PEOPLE = 3
ROLE_HOLDERS: dict[PersonRole, str] = {
    "annotator": "people of this project",
    "lead": "leads and admins",
    "admin": "admins",
}
BEFORE_ANSWER = (
    "This project is blind: what the machine found and what others say is shown once the check has "
    "ended and you have answered."
)
FIGURES_OF_LEADS = "This project is blind: only its leads see figures from everybody's answers."
# Where one goes on who switches the project on a page about one thing of the last.
LIST_PAGES = {
    "run": HISTORY_PAGE,
    "replay": HISTORY_PAGE,
    "compare": "pages/check/compare.py",
    "table": "pages/check/batch.py",
    "label": "pages/review/pending.py",
    "adjudicate_case": "pages/review/adjudicate.py",
    "benchmark": "pages/measure/benchmarks.py",
}
LEFT = "project.left"  # what was open in the last project: its name, page and parameters
CLAIM_CHARACTERS = 60  # of a claim, in the heading and the tab of its page
# All other addresses are the script's name.
URL_PATHS = {"pages/review/pending.py": "review"}
# Those of earlier releases, which stand in bookmarks and reports.
OLD_ADDRESSES = {
    "many": "batch",
    "pending": "review",
    "curate": "adjudicate",
    "settle": "adjudicate_case",
    "confidence": "calibration",
}


def list_pages() -> dict[str, list[StreamlitPage]]:
    """Return the pages by section for `st.navigation`; those without an icon are hidden.

    An address that is none of theirs gets a page that says so: Streamlit would open the first one.
    """
    pages = {
        section: [
            st.Page(
                path,
                title=title,
                url_path=URL_PATHS.get(path),
                icon=f":material/{icon}:" if icon else None,
                default=path == DEFAULT_PAGE,
                visibility="visible" if icon else "hidden",
            )
            for path, title, icon in entries
        ]
        for section, entries in MENU.items()
    }
    address = _read_page_address()
    if address not in {page.url_path for section in pages.values() for page in section}:
        lost = st.Page(draw_lost, title="Not found", url_path=address, visibility="hidden")
        pages["Not found"] = [lost]
    return pages


def draw_lost() -> None:
    """Go on from an old address to the page's own; of another, say that no page is there."""
    address = _read_page_address()
    if address in OLD_ADDRESSES:
        query = {name: st.query_params.get_all(name) for name in st.query_params}
        _replace_address(OLD_ADDRESSES[address], query)
    draw_page_title("Page not found")
    words = f"There is no page at “/{address}”. The menu lists all pages."
    draw_not_found(words, DEFAULT_PAGE)


def _read_page_address() -> str:
    """Return the last part of the address, by which Streamlit knows its pages; empty: the first."""
    return unquote(urlsplit(st.context.url or "").path).rsplit("/", 1)[-1]


def draw_not_found(words: str, page: str) -> None:
    """Say what was not found at an address, with a link to the page that leads on."""
    st.info(escape_markdown(words), icon=":material/search_off:")
    title, icon = next((t, i) for pages in MENU.values() for path, t, i in pages if path == page)
    draw_link(page, title, icon)


def open_linked_run() -> None:
    """Go on to the run that the address of the first page names: `/?run=ID`."""
    if run_id := st.query_params.get("run"):
        _replace_address("run", {"run": run_id})


def _replace_address(page: str, query: dict[str, Any]) -> NoReturn:
    """Go to a page's address: after `st.switch_page`, Back would lead here and on again."""
    query |= st.session_state.get(LINK_PARAMETERS, {})
    address = json.dumps(f"{page}?{urlencode(query, doseq=True)}".rstrip("?"))
    st.html(f"<script>location.replace({address})</script>", unsafe_allow_javascript=True)
    st.stop()


def menu_position() -> Literal["sidebar", "hidden"]:
    """Return where the menu is drawn; it is hidden from people who may see no page."""
    return "sidebar" if state.has_access() else "hidden"


@contextlib.contextmanager
def draw_frame(address: str) -> Iterator[None]:
    """Draw all around the page of that address; stop for people without a login or a role."""
    st.html(ASSETS / "app.css")
    st.html(ASSETS / "shortcuts.html", unsafe_allow_javascript=True)
    st.logo(ASSETS / "logo.svg", size="large", icon_image=ASSETS / "icon.png")
    if not _draw_login_or_sidebar(address):
        st.stop()
    try:
        with show_problems():
            draw_sample_bar()
            _draw_way_back()
            yield
    finally:  # after the page has written its own parameters
        _remember_in_browser()


def _draw_login_or_sidebar(address: str) -> bool:
    """Return True if the person may see pages; else draw the login or say why not."""
    try:
        if login.is_logged_out():
            login.draw_login()
            return False
        follow_link()
        with state.open_store() as store:
            person = state.get_person(store)
            project = state.get_project(store)
            projects = state.list_projects(store)
            several = len(store.projects.all()) > 1
    except NotAllowed as error:
        st.title("Counterpoint", anchor=False)
        st.info(escape_markdown(str(error)), icon=":material/group:")
        login.draw_logout()
        return False
    except ReviewError as error:
        st.title("Counterpoint", anchor=False)
        st.error(escape_markdown(str(error)), icon=":material/error:")
        with contextlib.suppress(ReviewError):  # a provider may let in a person without a name
            login.draw_logout()
        return False
    is_named = several or bool(st.session_state.get(state.SAMPLE_KEY))
    st.session_state[LINK_PARAMETERS] = {state.PROJECT_PARAMETER: project.id} if is_named else {}
    with st.sidebar:
        if len(projects) > 1:
            _draw_project_choice(projects, project, address)
        name = "no name yet" if person == GUEST else person
        st.caption(escape_markdown(name if len(projects) > 1 else f"{project.name} · {name}"))
        login.draw_logout()
    return True


def _remember_in_browser() -> None:
    with state.open_store() as store:
        person = state.get_person(store)
    is_own_name = person != GUEST and not login.is_login_required()
    project_id = st.session_state.get(LINK_PARAMETERS, {}).get(state.PROJECT_PARAMETER, "")
    with st.sidebar:
        remember_in_browser(person if is_own_name else "", project_id)


def _draw_project_choice(projects: Sequence[Project], current: Project, address: str) -> None:
    names = {project.id: project.name for project in projects}
    st.session_state["project.choice"] = current.id  # it may have been chosen by an address
    st.selectbox(
        "Project", list(names), format_func=names.__getitem__, key="project.choice",
        label_visibility="collapsed",
        on_change=_switch_project, args=(current, address),
    )  # fmt: skip


def _switch_project(left: Project, address: str) -> None:
    """Go on in the chosen project; from a page about one thing of the last, to the list of such."""
    query = dict(st.query_params) | {state.PROJECT_PARAMETER: left.id}
    state.choose_project(st.session_state["project.choice"])
    if address in LIST_PAGES and set(query) - {state.PROJECT_PARAMETER}:
        st.session_state[LEFT] = left.name, address, query
        st.session_state[TARGET] = {"page": LIST_PAGES[address], "query": dict(st.query_params)}


def _draw_way_back() -> None:
    """Say once what the switch of the project has closed, with a link to it."""
    if not (left := st.session_state.pop(LEFT, None)):
        return
    name, address, query = left
    words = (
        f"What you had open belongs to “{name}”, so it was closed; what you typed is kept there."
    )
    st.info(escape_markdown(words), icon=":material/info:")
    pages = [path for entries in MENU.values() for path, _, _ in entries]
    page = next(path for path in pages if path.endswith(f"/{address}.py"))
    draw_link(page, "Back to it", "arrow_back", **query)


def ask_name(
    why: str = "Answers stand under a name: give yours once, then say what is right.",
) -> bool:
    """Return True for a person with a name; else draw the field that asks for it."""
    with state.open_store() as store:
        if state.get_person(store) != GUEST:
            return True
    with st.form("person.form"):
        st.text_input(
            "Your name",
            key="person.name",
            max_chars=login.MAX_NAME_CHARS,
            help="It stands on your answers. This browser remembers it; Settings can change it.",
        )
        st.form_submit_button("Go on", key="person.save", on_click=_take_name)
    st.caption(why)
    show_problem("person.problem")
    return False


def _take_name() -> None:
    name = normalize_member_name(str(st.session_state.get("person.name") or ""))
    now = time.time()
    with store_problem("person.problem"):
        with state.open_store() as store:
            name_guest(store, state.get_project(store).id, name, now)
        if state.home_folder() != (own := state.own_home_folder()):  # asked in the sample
            with open_store(own) as store:
                name_guest(store, ensure_project(store, GUEST, now).id, name, now)
        st.session_state["person"] = name


def has_role(
    at_least: PersonRole, what: str = "", *, for_all: bool = False, project_id: str = ""
) -> bool:
    """Return True if the person's role permits `what`; else draw one line that says who can.

    `for_all`: it concerns all projects, so the role in the first one counts. Without `what`, which
    another line of the page then names, nothing is drawn.
    """
    with state.open_store() as store:
        project = store.projects.first() if for_all else None
        asked = project_id or (project or state.get_project(store)).id
        try:
            state.require_role(store, asked, at_least, what)
        except NotAllowed:
            members = store.projects.members(asked)
            names = [each.person for each in members if has_rank(each.role, at_least)]
        else:
            return True
    listed = f": {', '.join(names[:MAX_NAMED_PEOPLE])}" if names else ""
    if what:
        words = f"Only {ROLE_HOLDERS[at_least]} can {what}{listed}."
        st.caption(f":material/lock: {escape_markdown(words)}")
    return False


def is_withheld(case: Case) -> bool:
    """Return True if the person may not see what was said about a case before they answer it."""
    with state.open_store() as store:
        person = state.get_person(store)
        return bool(find_hidden_cases(store, case.project_id, person, [case.id]))


def stop_before_answer(*cases: Case) -> None:
    """Stop the page if the person must first answer one of the cases, with a link to it."""
    hidden = [case for case in cases if is_withheld(case)]
    if not hidden:
        return
    st.info(BEFORE_ANSWER, icon=":material/visibility_off:")
    with state.open_store() as store:
        project, person = store.projects.get(hidden[0].project_id), state.get_person(store)
        people = project.people_each if project else 1
        is_full = store.queue.is_full(hidden[0].id, person, people, time.time())
        is_queued = store.queue.get(hidden[0].id) is not None
    if is_queued and not is_full:
        draw_link("pages/review/label.py", "Answer it", "rate_review", case=hidden[0].id)
    else:
        draw_link("pages/review/pending.py", "Review", "checklist")
    st.stop()


def stop_for_blind() -> None:
    """Stop a page of figures from everybody's answers for those who may not see them."""
    with state.open_store() as store:
        project, person = state.get_project(store), state.get_person(store)
        is_shown = can_see_answers(store, project.id, person, is_settling=True)
    if not is_shown:
        st.info(FIGURES_OF_LEADS, icon=":material/visibility_off:")
        draw_link("pages/review/agreement.py", "Your own answers", "handshake")
        st.stop()


def draw_shortcut_list(keys: Mapping[str, str], key: str, place: str) -> None:
    """Draw the button that lists keyboard shortcuts; a new `place` scrolls the page to its top."""
    get_component("keys")(key=key, data={"keys": list(keys.items()), "place": place})


def draw_page_title(title: str, words: str = "", claim: str = "") -> None:
    """Draw the page's heading with a line under it, and name the browser's tab alike.

    Both begin with the first words of the page's `claim`, if it has one.
    """
    if claim:
        title = f"{clip_text(claim, CLAIM_CHARACTERS)} · {title}"
    st.set_page_config(page_title=f"{title} · Counterpoint")
    st.title(escape_markdown(title), anchor=False)
    if words:
        st.caption(words)
