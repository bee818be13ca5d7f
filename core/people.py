"""Who works here, where a name is enough: going on under another name, or somebody else."""

from __future__ import annotations

from core.checking import PERSON_NOTE, draft_of, drafts_of, keep_draft
from core.records import Member
from core.store import Store


def rename_person(store: Store, old: str, new: str, now: float) -> None:
    """Go on under another name: it gets the old one's roles, drafts and items in hand.

    What it has itself stays.

    Raises:
        InputError: the name is empty or too long.
    """
    with store.writing():
        store.projects.add_person(new, now)
        for project in store.projects.all():
            role = store.projects.role_of(project.id, old)
            if role and store.projects.role_of(project.id, new) is None:
                store.projects.set_member(Member(project.id, new, role, now))
        for name in drafts_of(store, old):
            if not draft_of(store, new, name):
                keep_draft(store, new, name, draft_of(store, old, name))
                keep_draft(store, old, name, "")
        store.queue.hand_over(old, new)
        store.projects.save_note(PERSON_NOTE, new)


def change_person(store: Store, project_id: str, new: str, now: float) -> None:
    """Somebody else works here now: nothing of who was here becomes theirs.

    Who has no role in the project yet is an annotator in it, as far as a name is enough.

    Raises:
        InputError: the name is empty or too long.
    """
    with store.writing():
        store.projects.add_person(new, now)
        if store.projects.role_of(project_id, new) is None:
            store.projects.set_member(Member(project_id, new, "annotator", now))
        store.projects.save_note(PERSON_NOTE, new)
