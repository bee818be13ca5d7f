"""Login and logout, the identity of the visitor, and the name that this browser remembers."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from components.widgets.controls import button, component, problem_kept, show_problem
from components.widgets.wording import escaped
from core.review import people
from core.runtime.errors import ConfigError, NotAllowed

COOKIE = "counterpoint_person"
LONGEST = 80
PROBLEM = "login.problem"
WHAT = (
    "Counterpoint checks what a language model said against documents and images, with people who "
    "have the last word."
)


def remembered() -> str:
    """Return the name last given in this browser, or "" if there is none."""
    name = unquote(str(st.context.cookies.get(COOKIE, ""))).strip()
    return name if len(name) <= LONGEST and name.isprintable() else ""


def remember(name: str) -> None:
    """Store the name in a cookie; draw the component where it takes no room."""
    component("remembered")(
        key="remembered", data={"cookie": COOKIE, "value": quote(name, safe="")}
    )


@st.cache_resource(show_spinner=False)
def configured() -> people.Login | None:
    """Read the login section of the secrets once per server; None if there is none.

    Raises:
        ConfigError: the section is invalid or the file cannot be read.
    """
    try:
        section = st.secrets.get(people.SECTION)
    except FileNotFoundError:  # Streamlit also raises it for a file that it cannot read
        if any(Path(path).exists() for path in st.get_option("secrets.files")):
            raise people.unreadable() from None
        return None
    return None if section is None else people.login_from(section)


def is_on() -> bool:
    """Return True if people must log in."""
    return configured() is not None


def is_outside() -> bool:
    """Return True for a visitor who must log in and has not."""
    return is_on() and st.user.to_dict().get("is_logged_in") is not True


def require_inside() -> None:
    """Raise NotAllowed if the visitor is not logged in; background threads pass."""
    # Threads of ours have no script context; a person who was logged in started them.
    if get_script_run_ctx() is not None and is_outside():
        raise NotAllowed("You are no longer logged in; reload the page and log in.")


def identity() -> people.Identity | None:
    """Return who is logged in, or None if this server has no login.

    Raises:
        NotAllowed: nobody is logged in.
        ConfigError: the provider does not name the person it let in.
    """
    if not is_on():
        return None
    if is_outside():
        raise NotAllowed("You are no longer logged in; reload the page and log in.")
    return people.identity_from(st.user.to_dict())


def draw_door() -> None:
    """Draw what Counterpoint is and a login button for each identity provider."""
    login = configured()
    if login is None:
        return
    st.title("Counterpoint", anchor=False)
    st.markdown(WHAT)
    url = urlsplit(st.context.url or "")
    address = f"{url.scheme}://{url.netloc}"
    if url.netloc and login.origin and login.origin != address:
        # The provider returns to the configured origin only, so the cookie would be lost.
        st.warning(f"You can log in only at {login.origin}, not at {escaped(address)}.")
        st.link_button("Go there", login.origin)
        return
    for name in login.providers:
        label = "Log in" if name == people.DEFAULT else f"Log in with {escaped(name)}"
        button(label, f"login.{name}", _log_in, name, icon="login", type="primary")
    show_problem(PROBLEM)


def _log_in(name: str) -> None:
    login = configured()
    with problem_kept(PROBLEM):
        if login is None:
            return
        people.require_reachable(login.providers[name])
        try:
            st.login(None if name == people.DEFAULT else name)
        except StreamlitAPIException as error:
            raise ConfigError(
                f"Expected a login with {name}, found: {' '.join(str(error).split())}"
            ) from error


def draw_log_out() -> None:
    """Draw the logout button; nothing if this server has no login."""
    if is_on():
        button("Log out", "login.out", st.logout, icon="logout")
