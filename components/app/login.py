"""Login: who is here, the way in and out, and the name that this browser remembers."""

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


def remembered() -> str:
    """The name that was given in this browser last; "" where none was."""
    name = unquote(str(st.context.cookies.get(COOKIE, ""))).strip()
    return name if len(name) <= LONGEST and name.isprintable() else ""


def remember(name: str) -> None:
    """Keep the name in this browser; draw it where it takes no room."""
    component("remembered")(
        key="remembered", data={"cookie": COOKIE, "value": quote(name, safe="")}
    )


PROBLEM = "login.problem"
WHAT = (
    "Counterpoint checks what a language model said against documents and images, with people who "
    "have the last word."
)


@st.cache_resource(show_spinner=False)
def configured() -> people.Login | None:
    """The login asked for as the server started (None: none), kept; a bad section: ConfigError."""
    try:
        section = st.secrets.get(people.SECTION)
    except FileNotFoundError:  # also what Streamlit says of a file that it cannot read
        if any(Path(path).exists() for path in st.get_option("secrets.files")):
            raise people.unreadable() from None
        return None
    return None if section is None else people.login_from(section)


def is_on() -> bool:
    """True where people must log in."""
    return configured() is not None


def is_outside() -> bool:
    """True for a visitor who must log in and has not."""
    return is_on() and st.user.to_dict().get("is_logged_in") is not True


def require_inside() -> None:
    """Raise NotAllowed for a visitor not logged in; threads of ours were begun by who had been."""
    if get_script_run_ctx() is not None and is_outside():
        raise NotAllowed("You are no longer logged in; reload the page and log in.")


def identity() -> people.Identity | None:
    """Who is logged in; None where there is no login.

    Raises:
        NotAllowed: nobody is.
        ConfigError: the provider does not say whom it let in.
    """
    if not is_on():
        return None
    if is_outside():
        raise NotAllowed("You are no longer logged in; reload the page and log in.")
    return people.identity_from(st.user.to_dict())


def draw_door() -> None:
    """What Counterpoint is, and a button for each identity provider."""
    found = configured()
    if found is None:
        return
    st.title("Counterpoint", anchor=False)
    st.markdown(WHAT)
    here = urlsplit(st.context.url or "")
    address = f"{here.scheme}://{here.netloc}"
    if here.netloc and found.origin and found.origin != address:
        # Its cookie would not come back from there, and the button seem to do nothing.
        st.warning(f"You can log in only at {found.origin}, not at {escaped(address)}.")
        st.link_button("Go there", found.origin)
        return
    for name in found.providers:
        label = "Log in" if name == people.DEFAULT else f"Log in with {escaped(name)}"
        button(label, f"login.{name}", _log_in, name, icon="login", type="primary")
    show_problem(PROBLEM)


def _log_in(name: str) -> None:
    found = configured()
    with problem_kept(PROBLEM):
        if found is None:
            return
        people.require_reachable(found.providers[name])
        try:
            st.login(None if name == people.DEFAULT else name)
        except StreamlitAPIException as error:
            raise ConfigError(
                f"Expected a login with {name}, found: {' '.join(str(error).split())}"
            ) from error


def draw_log_out() -> None:
    """The way out; nothing where there is no login."""
    if is_on():
        button("Log out", "login.out", st.logout, icon="logout")
