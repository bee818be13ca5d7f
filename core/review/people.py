"""Who works here: by name, or by login (OpenID Connect) from the operator's `[auth]` section.

Streamlit performs the login; this module checks the section beforehand and turns a provider's
claims into the name under which a person's actions are recorded.
"""

from __future__ import annotations

import getpass
import hashlib
import importlib.util
import json
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from core.runtime.errors import ConfigError, InputError, NotAllowed
from core.schema.records import Case, Label, Member, PersonRole, Project, Run, new_id
from core.schema.reviews import Correction
from core.store import Store
from core.store.ground_truth import GroundTruth
from core.store.projects import GUEST, ROLE_RANKS, has_rank

PERSON_NOTE = "person"
HOLDER_NOTE = "login.holder.{}"  # names the note with the identity that holds an address
SECRETS_PATH = Path(".streamlit") / "secrets.toml"
AUTH_SECTION = "auth"
DEFAULT_PROVIDER = "default"
REQUIRED_KEYS = ("client_id", "client_secret", "server_metadata_url")
LOGIN_PACKAGES = {"authlib": "Authlib", "httpx": "httpx"}
MIN_SECRET_LENGTH = 32
CALLBACK_PATH = "/oauth2callback"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
PROVIDER_TIMEOUT_SECONDS = 5.0
MAX_NAME_LENGTH = 80
MAX_NAMED_ADMINS = 5
MAIL_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")
PRINTABLE_ASCII = re.compile(r"[\x21-\x7e]+")
INVISIBLE_CHARACTER = re.compile(
    r"[\u00ad\u115f\u1160\u200b-\u200f\u202a-\u202e\u2060-\u2069\u3164\ufeff\uffa0]"
)


def rename_person(store: Store, old: str, new: str, now: float) -> None:
    """Continue under another name, which gets the old one's roles, drafts and claimed items."""
    with store.writing():
        store.projects.add_person(new, now)
        for project in store.projects.all():
            role = store.projects.role_of(project.id, old)
            if role and store.projects.role_of(project.id, new) is None:
                store.projects.set_member(Member(project.id, new, role, now))
        for name in list_drafts(store, old):
            if not load_draft(store, new, name):
                save_draft(store, new, name, load_draft(store, old, name))
                save_draft(store, old, name, "")
        store.queue.hand_over(old, new)
        store.projects.save_note(PERSON_NOTE, new)


def switch_person(store: Store, project_id: str, new: str, now: float) -> None:
    """Switch to another person, at least an annotator, who inherits nothing from the last one."""
    with store.writing():
        store.projects.add_person(new, now)
        if store.projects.role_of(project_id, new) is None:
            store.projects.set_member(Member(project_id, new, "annotator", now))
        store.projects.save_note(PERSON_NOTE, new)


def name_guest(store: Store, project_id: str, name: str, now: float) -> None:
    """Give a guest a name, to which goes what was begun here without one.

    Who has a role already keeps it, unless the guest's is higher: a project keeps its admin.
    Raises InputError: it is no name of a person.
    """
    if name == GUEST:
        raise InputError(f"Expected a name of your own, found “{GUEST}”; please type yours.")
    with store.writing():
        begun = store.projects.of(GUEST)
        rename_person(store, GUEST, name, now)
        for project in begun:
            held: list[PersonRole] = ["annotator"]
            for person in (GUEST, name):
                if role := store.projects.role_of(project.id, person):
                    held.append(role)
            highest = max(held, key=ROLE_RANKS.__getitem__)
            store.projects.set_member(Member(project.id, name, highest, now))
            store.projects.remove_member(project.id, GUEST)
        switch_person(store, project_id, name, now)


def find_operator(store: Store, project: Project | None = None) -> str:
    """Return who works at the command line: the project's first admin, else its first lead.

    Without a project it is that of the oldest one, and without anybody there the system's user.
    """
    project = project or store.projects.first()
    members = store.projects.members(project.id) if project else []
    leads = [m for m in members if has_rank(m.role, "lead") and m.person != GUEST]
    if leads:
        return min(leads, key=lambda m: (m.role != "admin", m.added_at)).person
    return _get_system_user()


def _get_system_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "me"


def list_first_admins(person: str) -> set[str]:
    """Return who administers the first project of a home that the person begins.

    The system's user of the command line is nobody who could be asked in a browser: beside that
    user a guest is admin, so whoever first gives a name there.
    """
    return {person, GUEST if person == _get_system_user() else person}


def ensure_project(store: Store, person: str, now: float) -> Project:
    """Return the oldest project; in an empty home create one, with its first admins."""
    with store.writing():
        projects = store.projects.all()
        if projects:
            return projects[0]
        project = Project(new_id(), "First project", now)
        store.projects.save(project)
        for admin in list_first_admins(person):
            store.projects.set_member(Member(project.id, admin, "admin", now))
    return project


def can_see_answers(
    store: Store, project_id: str, person: str, *, is_settling: bool = False
) -> bool:
    """Return True if the person may be shown what others answered on cases that are still open.

    In a blind project nobody may, except leads where they settle cases.
    """
    project = store.projects.get(project_id)
    if project is None or not project.is_blind:
        return True
    return is_settling and has_rank(store.projects.role_of(project_id, person), "lead")


def has_answered(store: Store, case_id: str, person: str) -> bool:
    """Return True if the person has answered the case, and not taken it back."""
    return bool(store.queue.answered_by(person, [case_id]))


def find_hidden_cases(
    store: Store, project_id: str, person: str, case_ids: Iterable[str]
) -> set[str]:
    """Return those cases of a project of which the person is not shown what anybody said.

    In a blind project a person sees the machine's verdict, the answers of others and the right
    answer only once they have answered themselves; leads, who settle cases, see them before.
    """
    if can_see_answers(store, project_id, person, is_settling=True):
        return set()
    wanted = set(case_ids)
    return wanted - store.queue.answered_by(person, wanted)


def withhold_verdicts(store: Store, project_id: str, person: str, runs: Sequence[Run]) -> list[Run]:
    """Return the runs, without their verdicts where the person may not see the case's."""
    hidden = find_hidden_cases(store, project_id, person, [run.case_id for run in runs])
    bare: dict[str, Any] = {
        "label": None,
        "p_hallucinated": None,
        "confidence": None,
        "cause": None,
    }
    return [replace(run, **bare) if run.case_id in hidden else run for run in runs]


def list_visible_answers(
    store: Store, case: Case, person: str, answers: Sequence[Correction]
) -> list[Correction]:
    """Return those of a case's answers that the person may be shown.

    A settled case shows all to those who may see what was said about it.
    """
    item = store.queue.get(case.id)
    is_settled = item is not None and item.state == "adjudicated"
    is_shown = is_settled and not find_hidden_cases(store, case.project_id, person, [case.id])
    if is_shown or can_see_answers(store, case.project_id, person):
        return list(answers)
    return [answer for answer in answers if answer.author == person]


def find_visible_truths(
    store: Store, project_id: str, person: str, truths: Mapping[str, GroundTruth]
) -> dict[str, GroundTruth]:
    """Return what counts for cases of a project as far as the person may be shown it.

    In a blind project that is their own answer until there is a right one.
    """
    if can_see_answers(store, project_id, person):
        return dict(truths)
    hidden = find_hidden_cases(store, project_id, person, truths)
    answers = store.corrections.newest_of_person(person, list(truths))
    visible = {}
    for case_id, truth in truths.items():
        if truth.basis in ("settled", "gold") and case_id not in hidden:
            visible[case_id] = truth
        else:
            own = (answers[case_id],) if case_id in answers else ()
            visible[case_id] = GroundTruth("waiting", records=own)
    return visible


def list_people_labels(
    store: Store, project_id: str, person: str, truths: Mapping[str, GroundTruth]
) -> dict[str, Label]:
    """Return the label by case that leads over the machine's, as far as the person may see it.

    Where people disagree, it is unclear.
    """
    visible = find_visible_truths(store, project_id, person, truths)
    return {
        case_id: truth.common_label or "unclear"
        for case_id, truth in visible.items()
        if truth.records
    }


def load_draft(store: Store, person: str, name: str) -> str:
    """Return a person's unsaved text kept under that name; empty if there is none."""
    return store.projects.note(f"draft.{name}.{person}")


def save_draft(store: Store, person: str, name: str, text: str) -> None:
    """Keep a draft; an empty text deletes it."""
    with store.writing():
        if load_draft(store, person, name) != text:
            store.projects.save_note(f"draft.{name}.{person}", text)
        names = list_drafts(store, person)
        if (name in names) != bool(text):
            remaining = [known for known in names if known != name] + ([name] if text else [])
            store.projects.save_note(f"drafts.{person}", json.dumps(remaining))


def list_drafts(store: Store, person: str) -> list[str]:
    """Return the names under which a person has unsaved text.

    They are kept as a list, as a note's key does not show where the draft's name ends.
    """
    names: list[str] = json.loads(store.projects.note(f"drafts.{person}") or "[]")
    return names


@dataclass(frozen=True)
class LoginConfig:
    """A checked `[auth]` section without its secrets.

    `origin` is the address under which people open the page; empty if only the server knows its
    port. `providers` maps each provider's name to its discovery document.
    """

    origin: str
    providers: Mapping[str, str]


@dataclass(frozen=True)
class ProviderIdentity:
    """A person as their provider knows them; `mail` is empty unless the provider verified it."""

    issuer: str
    subject: str
    mail: str = ""

    @property
    def key(self) -> str:
        """Return a hash that is unique to this identity among all providers."""
        return hashlib.sha256(json.dumps([self.issuer, self.subject]).encode()).hexdigest()

    @property
    def own_name(self) -> str:
        """Return a name that no other identity can have and that is no e-mail address."""
        name = f"{self.subject} ({self.issuer})"
        is_plain = PRINTABLE_ASCII.fullmatch(self.subject) and PRINTABLE_ASCII.fullmatch(
            self.issuer
        )
        return name if is_plain and len(name) <= MAX_NAME_LENGTH else f"id {self.key[:40]}"


def parse_login(section: object) -> LoginConfig:
    """Return the checked section. Raises ConfigError, whose message shows only names from it."""
    for module, package in LOGIN_PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            raise ConfigError(
                f"Expected the package {package}, which login needs, found none; run make setup."
            )
    if not isinstance(section, Mapping):
        raise ConfigError(f"Expected a table [auth] in {SECRETS_PATH}, found a single value.")
    secret = section.get("cookie_secret")
    if not isinstance(secret, str) or len(secret) < MIN_SECRET_LENGTH:
        raise ConfigError(
            f"Expected a cookie_secret of at least {MIN_SECRET_LENGTH} random characters under "
            f"[auth] in {SECRETS_PATH}, found {'a shorter one' if secret else 'none'}; "
            '`python -c "import secrets; print(secrets.token_hex(32))"` makes one.'
        )
    return LoginConfig(_parse_origin(section.get("redirect_uri")), dict(_parse_providers(section)))


def _parse_origin(address: object) -> str:
    """Return scheme, host and port of the redirect address; empty if Streamlit inserts the port."""
    text = address if isinstance(address, str) else ""
    parts = urlsplit(text.replace(":{port}", ""))
    is_local = parts.scheme == "http" and parts.hostname in LOCAL_HOSTS
    is_safe = parts.scheme == "https" or is_local
    if not is_safe or not parts.hostname or not parts.path.endswith(CALLBACK_PATH):
        raise ConfigError(
            f"Expected a redirect_uri such as https://counterpoint.example.org{CALLBACK_PATH} "
            f"under "
            f"[auth] in {SECRETS_PATH}, found {f'“{text}”' if text else 'none'}; the provider must "
            "know the same address."
        )
    return "" if "{port}" in text else f"{parts.scheme}://{parts.netloc}"


def _parse_providers(section: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each provider with its discovery document: the one in `[auth]`, then `[auth.NAME]`."""
    named = {n: t for n, t in section.items() if isinstance(t, Mapping) and n != "client_kwargs"}
    if not named or any(key in section for key in REQUIRED_KEYS):
        named = {DEFAULT_PROVIDER: section, **named}
    for name, table in named.items():
        where = "[auth]" if table is section else f"[auth.{name}]"
        missing = [key for key in REQUIRED_KEYS if not str(table.get(key) or "").strip()]
        if missing:
            raise ConfigError(
                f"Expected {', '.join(REQUIRED_KEYS)} under {where} in {SECRETS_PATH}, found no "
                f"{' and no '.join(missing)}; the identity provider gives them."
            )
        if "_" in name:
            raise ConfigError(
                f"Expected a provider's name without underscore in {SECRETS_PATH}, found {where}."
            )
        yield name, str(table["server_metadata_url"])


def load_login(folders: Sequence[Path]) -> LoginConfig | None:
    """Return the login that the last secrets file configures, or None.

    Raises ConfigError: the file or section is unusable.
    """
    section: object = None
    for folder in folders:
        try:
            text = (folder / SECRETS_PATH).read_text(encoding="utf-8")
            section = tomllib.loads(text).get(AUTH_SECTION, section)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, RecursionError):  # the parser's message may repeat a secret
            raise make_unreadable_error() from None
    return None if section is None else parse_login(section)


def make_unreadable_error() -> ConfigError:
    """Return the error for unreadable secrets: it is then unknown whether login is on."""
    return ConfigError(
        f"Expected TOML in {SECRETS_PATH}, found something that cannot be read; nobody is let "
        f"in until "
        "it is corrected there, because it may ask for a login."
    )


def check_provider(address: str) -> None:
    """Raise ConfigError unless the provider answers with a discovery document."""
    import httpx

    host = urlsplit(address).netloc or "an unknown address"
    try:
        answer = httpx.get(address, timeout=PROVIDER_TIMEOUT_SECONDS, follow_redirects=True)
        answer.raise_for_status()
        document = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        reason = str(error) if isinstance(error, httpx.HTTPStatusError) else type(error).__name__
        raise ConfigError(
            f"Expected the identity provider at {host} to answer, found: {reason.splitlines()[0]}. "
            "Try again in a while; if it lasts, server_metadata_url under [auth] may be wrong."
        ) from error
    if not isinstance(document, dict) or "authorization_endpoint" not in document:
        raise ConfigError(
            f"Expected an OpenID Connect discovery document at {host}, found something else; "
            "server_metadata_url under [auth] usually ends with /.well-known/openid-configuration."
        )


def parse_identity(claims: Mapping[str, object]) -> ProviderIdentity:
    """Return the identity in the claims. Raises ConfigError: issuer or subject is missing."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not (isinstance(issuer, str) and issuer and isinstance(subject, str) and subject):
        raise ConfigError(
            "Expected the claims “iss” and “sub” of the identity provider, found one missing; "
            "client_kwargs under [auth] must ask for the scope openid."
        )
    mail, verified = claims.get("email"), claims.get("email_verified")
    is_verified = verified is True or verified == "true"  # some providers say it as a text
    is_known = isinstance(mail, str) and is_verified and _is_mail(mail)
    return ProviderIdentity(issuer, subject, str(mail).lower() if is_known else "")


def normalize_member_name(typed: str) -> str:
    """Return a typed name in normal form C, without invisible characters; an address in lower case.

    What looks alike is then one person, and can be typed again.
    """
    words = INVISIBLE_CHARACTER.sub("", typed).split()
    name = unicodedata.normalize("NFC", " ".join(words))
    return name.lower() if _is_mail(name) else name


def _is_mail(text: str) -> bool:
    """Return True for an ASCII address; other letters may become someone else's in lower case."""
    return len(text) <= MAX_NAME_LENGTH and MAIL_ADDRESS.fullmatch(text) is not None


def resolve_name(store: Store, identity: ProviderIdentity, now: float) -> str:
    """Return the permanent name of an identity; in an empty home also create the first project.

    It is the verified e-mail address, by which an admin knows whom they add, else the subject with
    its issuer. Only issuer and subject together are unique and never reassigned (OpenID Connect
    Core 5.7); addresses change hands, and two providers may know the same one. So the first
    identity that acts under an address keeps it: another one with that address gets its subject's
    name, and a person whose address changes keeps their name. Nothing is written for a person
    without a role.
    """
    name_note = f"login.name.{identity.key}"
    if name := store.projects.note(name_note):
        return name
    name = _choose_name(store, identity)
    if store.projects.first() is not None and not store.projects.of(name):
        return name
    with store.writing():
        name = _choose_name(store, identity)
        ensure_project(store, name, now)
        if store.projects.of(name):
            save_name(store, identity, name)
            store.projects.save_note(HOLDER_NOTE.format(name), identity.key)
    return name


def save_name(store: Store, identity: ProviderIdentity, name: str) -> None:
    """Let an identity act under a name that it has in another home; within `writing()`."""
    store.projects.save_note(f"login.name.{identity.key}", name)


def _choose_name(store: Store, identity: ProviderIdentity) -> str:
    mail = identity.mail
    holder = store.projects.note(HOLDER_NOTE.format(mail)) if mail else ""
    return mail if mail and holder in ("", identity.key) else identity.own_name


def find_project(store: Store, person: str, wanted: str) -> Project:
    """Return the wanted project, else the person's first.

    Raises NotAllowed: the person has no project; the message says whom to ask.
    """
    projects = store.projects.of(person)
    if projects:
        return next((project for project in projects if project.id == wanted), projects[0])
    first = store.projects.first()
    admins = [one for one in store.projects.admins(first.id) if one != GUEST] if first else []
    raise NotAllowed(
        f"You are logged in as {person}, who has no role here yet. Ask "
        f"{' or '.join(admins[:MAX_NAMED_ADMINS]) or 'whoever runs this server'} to add exactly "
        f"this "
        "name on Project, then reload the page."
    )
