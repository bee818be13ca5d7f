"""What a person does on a page, and what lies in the store behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from core.schema.records import Case, Member, PersonRole, Project, Run
from core.store import Store, open_store


@dataclass(frozen=True)
class Site:
    """The app, opened on a page with query parameters, and its home."""

    open: Callable[..., AppTest]
    home: Path


FIELDS = (
    "text_input text_area number_input selectbox multiselect segmented_control slider checkbox "
    "toggle file_uploader"
).split()


def press(at: AppTest, key: str) -> AppTest:
    """Click a button; nothing breaks."""
    at.button(key=key).click().run()
    assert not at.exception, at.exception[0].message
    return at


def put(at: AppTest, key: str, value: Any) -> AppTest:
    """Give a field of any kind a value; nothing breaks."""
    found = next(one for kind in FIELDS for one in getattr(at, kind) if one.key == key)
    found.set_value(value).run()
    assert not at.exception, at.exception[0].message
    return at


def keys(at: AppTest) -> set[str]:
    """The keys of all buttons and fields on the page."""
    return {str(one.key) for kind in ("button", *FIELDS) for one in getattr(at, kind)}


def told(at: AppTest) -> str:
    """Everything that stands on the page in words, without escapes."""
    kinds = "title header subheader markdown caption info warning error success toast".split()
    found = [str(element.value) for kind in kinds for element in getattr(at, kind)]
    found += [str(link.proto.label) for link in at.get("page_link")]
    return "\n".join(found).replace("\\", "").replace("\u2060", "")


def member(home: Path, project_id: str, person: str, role: PersonRole) -> None:
    """Give a person a role."""
    with open_store(home) as store:
        store.projects.set_member(Member(project_id, person, role, 1.0))


def run_of(store: Store, run_id: str) -> Run:
    """A run that is there."""
    run = store.runs.get(run_id, 9.0, 60.0)
    assert run is not None
    return run


def case_of(store: Store, run_id: str) -> Case:
    """The case of a run."""
    case = store.cases.get(run_of(store, run_id).case_id)
    assert case is not None
    return case


def project_of(home: Path, project_id: str) -> Project:
    """A project as it is stored."""
    with open_store(home) as store:
        project = store.projects.get(project_id)
    assert project is not None
    return project
