"""An image of the library as the browser fetches it: made upright once, served once."""

from __future__ import annotations

import streamlit as st
from streamlit import runtime

from components import state
from core.config import Settings
from core.documents.library import file_bytes
from core.documents.rendering import Upright, upright_picture

MOST_KEPT = 8  # pictures, of some megabytes each


def picture_of(source_id: str, name: str) -> Upright:
    """The stored image as people see it, encoded anew; kept for the next rerun.

    Raises:
        InputError: its content is not in the library any more, or it cannot be drawn.
    """
    data = file_bytes(state.home(), source_id)
    with state.open_store() as store:
        settings = store.projects.settings()
    return _upright(source_id, settings.megapixels, data, name, settings)


# As a resource, since a copy of the bytes at each rerun would gain nothing: it is frozen.
@st.cache_resource(max_entries=MOST_KEPT, show_spinner="Drawing the image…")
def _upright(
    source_id: str, megapixels: int, _data: bytes, _name: str, _settings: Settings
) -> Upright:
    return upright_picture(_data, name=_name, settings=_settings)


def address_of(picture: Upright, key: str) -> str:
    """Where the browser fetches the picture while the page shows it.

    The bytes go where those of `st.image` go (Streamlit's media files): over HTTP, once, and the
    browser keeps them. In a component's `data` they would travel at every rerun.
    """
    if not runtime.exists():  # a script run without a server
        return ""
    files = runtime.get_instance().media_file_mgr
    path = files.add(picture.data, picture.media_type, f"box_editor.{key}")
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path
