"""Login and logout, the identity of the visitor, and the name that this browser remembers."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from components.widgets.controls import draw_button, get_component, show_problem, store_problem
from components.widgets.wording import escape_markdown
from core.review import people
from core.runtime.errors import ConfigError, NotAllowed

COOKIE = "counterpoint_person"
MAX_NAME_CHARS = 80
PROBLEM_KEY = "login.problem"
PRODUCT_DESCRIPTION = (
    "Counterpoint checks what a language model said against documents and images, with people who "
    "have the last word."
)


def read_remembered_name() -> str:
    """Return the name last given in this browser, or "" if there is none."""
    name = unquote(str(st.context.cookies.get(COOKIE, ""))).strip()
    return name if len(name) <= MAX_NAME_CHARS and name.isprintable() else ""


def remember_in_browser(name: str, project_id: str) -> None:
    """Store the name in a cookie and the project in the address, unless they are empty.

    The address is replaced, not added to the browser's history: Back would have to be pressed
    twice. Draw the component where it takes no room.
    """
    get_component("remembered")(
        key="remembered",
        data={
            "cookie": COOKIE,
            "value": quote(name, safe=""),
            "project": project_id,
            # Pages have addresses of their own, and write their own parameters into them.
            "address": [st.context.url, dict(st.query_params)],
        },
    )


@st.cache_resource(show_spinner=False)
def read_login_section() -> people.LoginConfig | None:
    """Read the login section of the secrets once per server; None if there is none.

    Raises:
        ConfigError: the section is invalid or the file cannot be read.
    """
    try:
        section = st.secrets.get(people.AUTH_SECTION)
    except FileNotFoundError:  # Streamlit also raises it for a file that it cannot read
        if any(Path(path).exists() for path in st.get_option("secrets.files")):
            raise people.make_unreadable_error() from None
        return None
    return None if section is None else people.parse_login(section)


def is_login_required() -> bool:
    """Return True if people must log in."""
    return read_login_section() is not None


def is_logged_out() -> bool:
    """Return True for a visitor who must log in and has not."""
    return is_login_required() and st.user.to_dict().get("is_logged_in") is not True


def require_logged_in() -> None:
    """Raise NotAllowed if the visitor is not logged in; background threads pass."""
    # Threads of ours have no script context; a person who was logged in started them.
    if get_script_run_ctx() is not None and is_logged_out():
        raise NotAllowed("You are no longer logged in; reload the page and log in.")


def get_identity() -> people.ProviderIdentity | None:
    """Return who is logged in, or None if this server has no login.

    Raises:
        NotAllowed: nobody is logged in.
        ConfigError: the provider does not name the person it let in.
    """
    if not is_login_required():
        return None
    if is_logged_out():
        raise NotAllowed("You are no longer logged in; reload the page and log in.")
    return people.parse_identity(st.user.to_dict())


def draw_login() -> None:
    """Draw what Counterpoint is and a login button for each identity provider."""
    login = read_login_section()
    if login is None:
        return
    st.title("Counterpoint", anchor=False)
    st.markdown(PRODUCT_DESCRIPTION)
    url = urlsplit(st.context.url or "")
    address = f"{url.scheme}://{url.netloc}"
    if url.netloc and login.origin and login.origin != address:
        # The provider returns to the configured origin only, so the cookie would be lost.
        st.warning(f"You can log in only at {login.origin}, not at {escape_markdown(address)}.")
        st.link_button("Go there", login.origin)
        return
    for name in login.providers:
        label = (
            "Log in" if name == people.DEFAULT_PROVIDER else f"Log in with {escape_markdown(name)}"
        )
        draw_button(label, f"login.{name}", _log_in, name, icon="login", type="primary")
    show_problem(PROBLEM_KEY)


def _log_in(name: str) -> None:
    login = read_login_section()
    with store_problem(PROBLEM_KEY):
        if login is None:
            return
        people.check_provider(login.providers[name])
        try:
            st.login(None if name == people.DEFAULT_PROVIDER else name)
        except StreamlitAPIException as error:
            raise ConfigError(
                f"Expected a login with {name}, found: {' '.join(str(error).split())}"
            ) from error


def draw_logout() -> None:
    """Draw the logout button; nothing if this server has no login."""
    if is_login_required():
        draw_button("Log out", "login.out", st.logout, icon="logout")
