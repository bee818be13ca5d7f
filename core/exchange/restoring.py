"""An archive's content becomes a project of a store: in one transaction, under its own ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.answering import require_rate
from core.debate.protocols import require_options
from core.documents.library import store_file
from core.documents.terms import terms
from core.errors import ConflictError, InputError
from core.formats.fields import LONGEST_ID
from core.jobs import new_id
from core.records import Case, LibraryEntry, Member, Plan, Project, Run
from core.reviews import Assignment, Correction, Gold, Handling, Item, Suggestion
from core.store import Store
from core.store.batches import Batch, BatchRow
from core.store.prompt_edits import PromptEdit
from core.store.traces import restore_trace

MOST_NAMES = 1000


@dataclass(frozen=True)
class Content:
    """What an archive holds, checked for its shape; documents and traces by their ids."""

    project: Project
    members: Sequence[Member]
    library: Sequence[LibraryEntry]
    cases: Sequence[Case]
    runs: Sequence[Run]
    corrections: Sequence[Correction]
    golds: Sequence[Gold]
    suggestions: Sequence[Suggestion]
    handlings: Sequence[Handling]
    items: Sequence[Item]
    assignments: Sequence[Assignment]
    prompts: Sequence[PromptEdit]
    batches: Sequence[Batch]
    batch_rows: Sequence[BatchRow]
    documents: Mapping[str, bytes]
    traces: Mapping[str, bytes]


def restore(
    store: Store, home: Path, content: Content, by: str, now: float
) -> tuple[Project, bool]:
    """(the content's project, whether it was stored); one that is here already is left as it is.

    Raises:
        InputError: its parts do not belong together.
        NotAllowed: `by` may not begin a project here; in an empty home everybody may.
        ConflictError: some of its cases are here, but not as this project.
    """
    _require_sense(content)
    with store.writing():
        if store.projects.first() is not None:
            store.projects.require_for_all(by, "admin", "begin a project")
        here = [case.id for case in content.cases if store.cases.get(case.id) is not None]
        known = store.projects.get(content.project.id)
        if known is not None and len(here) == len(content.cases):
            return known, False
        if here or known is not None:
            raise ConflictError(
                f"Some of “{content.project.name}” is here already ({len(here)} of "
                f"{len(content.cases)} cases), so nothing was stored; import it into another home."
            )
        project = _with_free_name(store, content.project)
        _people_and_files(store, home, project, content, by, now)
        _cases(store, project, content)
        _prompts_and_tables(store, content)
    return project, True


def _require_sense(content: Content) -> None:
    """Every record is of a case and a run of the archive itself."""
    project = content.project.id
    if content.project.error_rate is not None:
        require_rate(content.project.error_rate)
    require_options(Plan(content.project.protocol, options=content.project.options))
    for case in content.cases:
        if not 0 < len(case.id) <= LONGEST_ID or not case.id.isprintable():
            raise InputError(
                f"Expected ids of 1 to {LONGEST_ID} characters that can be shown, found one of "
                f"{len(case.id):,}; nothing was stored."
            )
    cases = {case.id for case in content.cases}
    runs = {run.id: run.case_id for run in content.runs}
    owned: list[Any] = [
        *content.members,
        *content.library,
        *content.cases,
        *content.runs,
        *content.items,
        *content.prompts,
        *content.batches,
    ]
    of_cases: list[Any] = [
        *content.runs, *content.corrections, *content.golds, *content.suggestions,
        *content.handlings, *content.items, *content.assignments,
    ]  # fmt: skip
    judged: list[Any] = [*content.corrections, *content.items]
    told = [(one.run_id, one.case_id) for one in judged if one.run_id]
    rows = content.batch_rows
    is_whole = (
        all(one.project_id == project for one in owned)
        and all(one.case_id in cases for one in of_cases)
        and all(runs.get(run or "") == case for run, case in told)
        and {item.case_id for item in content.items} >= {a.case_id for a in content.assignments}
        and {row.batch_id for row in rows} <= {batch.id for batch in content.batches}
        and all(row.case_id is None or row.case_id in cases for row in rows)
        and all(runs.get(row.run_id) == row.case_id for row in rows if row.run_id)
        and set(content.traces) <= set(runs)
        and {entry.id for entry in content.library} == set(content.documents)
        and len(cases) == len(content.cases)
    )
    if not is_whole:
        raise InputError(
            "Expected an archive whose parts belong to one project, found others; export it again."
        )


def _with_free_name(store: Store, project: Project) -> Project:
    taken = {one.name for one in store.projects.all()}
    names = (project.name, *(f"{project.name} ({n})" for n in range(2, MOST_NAMES)))
    name = next((one for one in names if one not in taken), f"{project.name} {new_id()}")
    return replace(project, name=name)


def _people_and_files(
    store: Store, home: Path, project: Project, content: Content, by: str, now: float
) -> None:
    store.projects.save(project)
    for member in content.members:
        store.projects.set_member(member)
    if store.projects.role_of(project.id, by) != "admin":
        store.projects.set_member(Member(project.id, by, "admin", now))
    settings = store.projects.settings()
    for entry in content.library:
        data = content.documents[entry.id]
        added = store_file(
            store, home, project.id, entry.name, data, entry.added_by, entry.added_at, settings
        )
        if added.kind != entry.kind:
            raise InputError(
                f"Expected {entry.name[:60]} as {entry.kind}, found {added.kind}; export it again."
            )


def _cases(store: Store, project: Project, content: Content) -> None:
    responses = {case.id: case for case in content.cases}
    for case in content.cases:
        words = terms(f"{case.question} {case.response}", case.language)
        store.cases.add(replace(case, project_id=project.id), list(words))
    for run in content.runs:
        if run.id in content.traces:
            restore_trace(store, content.traces[run.id], run, responses[run.case_id])
        else:
            store.runs.add(replace(run, origin="imported"), "", 0.0)
    for gold in content.golds:
        store.golds.add(gold, responses[gold.case_id].response)
    for correction in content.corrections:
        response = responses[correction.case_id].response
        store.corrections.add(correction, response, is_read_elsewhere=True)
    for suggestion in content.suggestions:
        store.golds.suggest(suggestion, responses[suggestion.case_id])
    for handling in content.handlings:
        store.handlings.add(handling)
    people: dict[str, list[Assignment]] = {}
    for assignment in content.assignments:
        people.setdefault(assignment.case_id, []).append(assignment)
    for item in content.items:
        store.queue.restore(item, people.get(item.case_id, ()))


def _prompts_and_tables(store: Store, content: Content) -> None:
    """Edits of prompts in their order, and tables of claims with their rows.

    Whether a prompt can be filled is seen where it is used: one kept under earlier rules comes too.
    """
    for edit in content.prompts:
        store.prompt_edits.save(edit)
    for batch in content.batches:
        store.batches.add(batch, [row for row in content.batch_rows if row.batch_id == batch.id])
