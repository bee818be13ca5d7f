"""Who works here: by a name, or by login (OpenID Connect) and the operator's `[auth]` section.

Streamlit carries the login out; here its section is checked before anybody clicks, and a provider's
claims become the name that stands at everything a person does.
"""

from __future__ import annotations

import getpass
import hashlib
import importlib.util
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from core.runtime.errors import ConfigError, NotAllowed
from core.schema.records import Member, Project, new_id
from core.store import Store


def rename_person(store: Store, old: str, new: str, now: float) -> None:
    """Go on under another name, which gets the old one's roles, drafts and items in hand."""
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
    """Somebody else works here now, at least an annotator: nothing of who was here is theirs."""
    with store.writing():
        store.projects.add_person(new, now)
        if store.projects.role_of(project_id, new) is None:
            store.projects.set_member(Member(project_id, new, "annotator", now))
        store.projects.save_note(PERSON_NOTE, new)


PERSON_NOTE = "person"
HOLDER = "login.holder.{}"  # the note of an address


def person_here(store: Store) -> str:
    """Who works here: the name that was given last, else the system's."""
    if name := store.projects.note(PERSON_NOTE):
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "me"


def first_project(store: Store, person: str, now: float) -> Project:
    """The oldest project; a newcomer gets one, and is its admin."""
    with store.writing():
        projects = store.projects.all()
        if projects:
            return projects[0]
        project = Project(new_id(), "First project", now)
        store.projects.save(project)
        store.projects.set_member(Member(project.id, person, "admin", now))
    return project


def draft_of(store: Store, person: str, name: str) -> str:
    """What a person has typed and not saved, kept under that name; empty when there is nothing."""
    return store.projects.note(f"draft.{name}.{person}")


def keep_draft(store: Store, person: str, name: str, text: str) -> None:
    """Keep a draft; an empty text lets go of it."""
    with store.writing():
        if draft_of(store, person, name) != text:
            store.projects.save_note(f"draft.{name}.{person}", text)
        names = drafts_of(store, person)
        if (name in names) != bool(text):
            kept = [known for known in names if known != name] + ([name] if text else [])
            store.projects.save_note(f"drafts.{person}", json.dumps(kept))


def drafts_of(store: Store, person: str) -> list[str]:
    """The names under which a person has something typed and not saved.

    They are kept as a list: of a note's own name nobody could tell where the draft's name ends.
    """
    names: list[str] = json.loads(store.projects.note(f"drafts.{person}") or "[]")
    return names


SECRETS = Path(".streamlit") / "secrets.toml"
SECTION = "auth"
DEFAULT = "default"
NEEDED = ("client_id", "client_secret", "server_metadata_url")
PACKAGES = {"authlib": "Authlib", "httpx": "httpx"}
SHORTEST_SECRET = 32
CALLBACK = "/oauth2callback"
ON_THIS_COMPUTER = ("localhost", "127.0.0.1", "::1")
PATIENCE_SECONDS = 5.0
LONGEST_NAME = 80
MOST_NAMED = 5
MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")
PLAIN = re.compile(r"[\x21-\x7e]+")
INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u2060\ufeff]")


@dataclass(frozen=True)
class Login:
    """A checked `[auth]` section: no secret is in it.

    `origin` is the address under which people open the page; empty where its port is only known
    to the server. `providers` gives each one's discovery document by name.
    """

    origin: str
    providers: Mapping[str, str]


@dataclass(frozen=True)
class Identity:
    """Somebody as their provider knows them; `mail` is empty unless the provider verified it."""

    issuer: str
    subject: str
    mail: str = ""

    @property
    def key(self) -> str:
        """Tells this identity from every other one, of any provider."""
        return hashlib.sha256(json.dumps([self.issuer, self.subject]).encode()).hexdigest()

    @property
    def own_name(self) -> str:
        """A name that no other identity can have, and that is no e-mail address."""
        name = f"{self.subject} ({self.issuer})"
        is_plain = PLAIN.fullmatch(self.subject) and PLAIN.fullmatch(self.issuer)
        return name if is_plain and len(name) <= LONGEST_NAME else f"id {self.key[:40]}"


def login_from(section: object) -> Login:
    """The section as it must be, else ConfigError, in which nothing of it is shown but names."""
    for module, package in PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            raise ConfigError(
                f"Expected the package {package}, which login needs, found none; run make setup."
            )
    if not isinstance(section, Mapping):
        raise ConfigError(f"Expected a table [auth] in {SECRETS}, found a single value.")
    secret = section.get("cookie_secret")
    if not isinstance(secret, str) or len(secret) < SHORTEST_SECRET:
        raise ConfigError(
            f"Expected a cookie_secret of at least {SHORTEST_SECRET} random characters under "
            f"[auth] in {SECRETS}, found {'a shorter one' if secret else 'none'}; "
            '`python -c "import secrets; print(secrets.token_hex(32))"` makes one.'
        )
    return Login(_origin(section.get("redirect_uri")), dict(_providers(section)))


def _origin(address: object) -> str:
    """Scheme, host and port of the redirect address; empty where Streamlit puts its own port in."""
    text = address if isinstance(address, str) else ""
    parts = urlsplit(text.replace(":{port}", ""))
    is_local = parts.scheme == "http" and parts.hostname in ON_THIS_COMPUTER
    is_safe = parts.scheme == "https" or is_local
    if not is_safe or not parts.hostname or not parts.path.endswith(CALLBACK):
        raise ConfigError(
            f"Expected a redirect_uri such as https://counterpoint.example.org{CALLBACK} under "
            f"[auth] in {SECRETS}, found {f'“{text}”' if text else 'none'}; the provider must "
            "know the same address."
        )
    return "" if "{port}" in text else f"{parts.scheme}://{parts.netloc}"


def _providers(section: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each provider with its discovery document: the one under `[auth]`, then `[auth.NAME]`."""
    named = {n: t for n, t in section.items() if isinstance(t, Mapping) and n != "client_kwargs"}
    if not named or any(key in section for key in NEEDED):
        named = {DEFAULT: section, **named}
    for name, table in named.items():
        where = "[auth]" if table is section else f"[auth.{name}]"
        missing = [key for key in NEEDED if not str(table.get(key) or "").strip()]
        if missing:
            raise ConfigError(
                f"Expected {', '.join(NEEDED)} under {where} in {SECRETS}, found no "
                f"{' and no '.join(missing)}; the identity provider gives them."
            )
        if "_" in name:
            raise ConfigError(
                f"Expected a provider's name without underscore in {SECRETS}, found {where}."
            )
        yield name, str(table["server_metadata_url"])


def login_here(folders: Sequence[Path]) -> Login | None:
    """The login that the last secrets file asks for; None where there is none.

    Raises ConfigError: it is of no use.
    """
    section: object = None
    for folder in folders:
        try:
            text = (folder / SECRETS).read_text(encoding="utf-8")
            section = tomllib.loads(text).get(SECTION, section)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, RecursionError):  # the parser's own words may repeat a secret
            raise unreadable() from None
    return None if section is None else login_from(section)


def unreadable() -> ConfigError:
    """What to say of secrets that cannot be read: whether login is on is not known then."""
    return ConfigError(
        f"Expected TOML in {SECRETS}, found something that cannot be read; nobody is let in until "
        "it is corrected there, because it may ask for a login."
    )


def require_reachable(address: str) -> None:
    """Look whether a provider answers with a discovery document (ConfigError if not)."""
    import httpx

    host = urlsplit(address).netloc or "an unknown address"
    try:
        answer = httpx.get(address, timeout=PATIENCE_SECONDS, follow_redirects=True)
        answer.raise_for_status()
        found = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        why = str(error) if isinstance(error, httpx.HTTPStatusError) else type(error).__name__
        raise ConfigError(
            f"Expected the identity provider at {host} to answer, found: {why.splitlines()[0]}. "
            "Try again in a while; if it lasts, server_metadata_url under [auth] may be wrong."
        ) from error
    if not isinstance(found, dict) or "authorization_endpoint" not in found:
        raise ConfigError(
            f"Expected an OpenID Connect discovery document at {host}, found something else; "
            "server_metadata_url under [auth] usually ends with /.well-known/openid-configuration."
        )


def identity_from(claims: Mapping[str, object]) -> Identity:
    """Who the provider says this is. Raises ConfigError: issuer or subject is missing."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not (isinstance(issuer, str) and issuer and isinstance(subject, str) and subject):
        raise ConfigError(
            "Expected the claims “iss” and “sub” of the identity provider, found one missing; "
            "client_kwargs under [auth] must ask for the scope openid."
        )
    mail, verified = claims.get("email"), claims.get("email_verified")
    is_verified = verified is True or verified == "true"  # some providers say it as a text
    is_known = isinstance(mail, str) and is_verified and _is_mail(mail)
    return Identity(issuer, subject, str(mail).lower() if is_known else "")


def member_name(typed: str) -> str:
    """A typed or pasted name without what nobody sees; an address in small letters."""
    name = INVISIBLE.sub("", typed).strip()
    return name.lower() if _is_mail(name) else name


def _is_mail(text: str) -> bool:
    """True for a plain address: other letters may turn into another's when made small."""
    return len(text) <= LONGEST_NAME and MAIL.fullmatch(text) is not None


def name_of(store: Store, identity: Identity, now: float) -> str:
    """The name of an identity, here and for good; who comes to an empty home begins its project.

    It is the verified e-mail address, by which an admin knows whom they add, else the subject with
    its issuer. Only issuer and subject together are unique and never given to somebody else
    (OpenID Connect Core 5.7); addresses change hands, and two providers may know the same one. So
    the first identity that does something under an address keeps it: another one with that address
    gets its subject's name, and who gets another address keeps their name. Nothing is written for
    somebody who has no role anywhere.
    """
    bound = f"login.name.{identity.key}"
    if name := store.projects.note(bound):
        return name
    name = _free_name(store, identity)
    if store.projects.first() is not None and not store.projects.of(name):
        return name
    with store.writing():
        name = _free_name(store, identity)
        first_project(store, name, now)
        if store.projects.of(name):
            store.projects.save_note(bound, name)
            store.projects.save_note(HOLDER.format(name), identity.key)
    return name


def _free_name(store: Store, identity: Identity) -> str:
    mail = identity.mail
    holder = store.projects.note(HOLDER.format(mail)) if mail else ""
    return mail if mail and holder in ("", identity.key) else identity.own_name


def project_of(store: Store, person: str, wanted: str) -> Project:
    """The wanted project, else the first of theirs.

    Raises NotAllowed: the person has no project; the message says whom to ask.
    """
    mine = store.projects.of(person)
    if mine:
        return next((project for project in mine if project.id == wanted), mine[0])
    first = store.projects.first()
    admins = store.projects.admins(first.id) if first else []
    raise NotAllowed(
        f"You are logged in as {person}, who has no role here yet. Ask "
        f"{' or '.join(admins[:MOST_NAMED]) or 'whoever runs this server'} to add exactly this "
        "name on Project, then reload the page."
    )
