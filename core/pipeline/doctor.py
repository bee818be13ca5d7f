"""Checks what works on this computer and says how to fix the rest: `python -m core doctor`."""

from __future__ import annotations

import importlib.metadata
import io
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image, ImageDraw, ImageFont

from core.documents.isolation import read_source
from core.documents.source_builder import ignore_progress
from core.llm.keys import load_keys
from core.llm.local_server import MODEL, find_weights
from core.llm.servers import find_servers
from core.review.people import check_provider, load_login
from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT, Settings
from core.runtime.errors import ConfigError, ReviewError
from core.store import open_store
from core.tools.sandbox import explain_unavailable
from core.tools.web_search import load_web_choice, try_search
from core.verdict.classifier import load_classifier

OCR_WORD = "Counterpoint"
LEAST_FREE_BYTES = 1_000_000_000


@dataclass(frozen=True)
class DoctorCheck:
    """The result of one check: whether it works, and what was found or how to fix it."""

    name: str
    works: bool
    words: str


def run_checks(home: Path) -> Iterator[DoctorCheck]:
    """Run one check after the other."""
    for name, check in DOCTOR_CHECKS:
        began = time.perf_counter()
        try:
            words = check(home)
        except (ImportError, importlib.metadata.PackageNotFoundError) as bad:
            yield DoctorCheck(name, False, f"A package is missing ({bad}); run make setup.")
        except (ReviewError, OSError) as bad:
            yield DoctorCheck(name, False, " ".join(str(bad).split()))
        else:
            seconds = time.perf_counter() - began
            yield DoctorCheck(name, True, f"{words} ({seconds:.2f} s)")


def run_doctor(home: Path) -> tuple[int, str]:
    """Return (0 if everything works, else 1; a line for each check)."""
    results = list(run_checks(home))
    lines = (f"{'ok  ' if item.works else 'FAIL'}  {item.name}: {item.words}\n" for item in results)
    return int(not all(item.works for item in results)), "".join(lines)


def _check_packages(home: Path) -> str:
    requirements = (PROJECT_ROOT / "requirements.txt").read_text().splitlines()
    wanted = [pin for line in requirements if "==" in (pin := line.split("#")[0].strip())]
    wrong = []
    for pin in wanted:
        name, pinned = pin.split("==")
        installed = importlib.metadata.version(name.split("[")[0])
        if installed.split("+")[0] != pinned.split(";")[0].strip():
            wrong.append(f"{name} {installed} instead of {pinned}")
    if wrong:
        raise ConfigError(f"Expected the pinned packages, found {', '.join(wrong)}; `make setup`.")
    return f"{len(wanted)} packages as pinned"


def _check_home(home: Path) -> str:
    with open_store(home) as store, store.writing():
        store.projects.save_note("doctor", str(time.time()))
    free = shutil.disk_usage(home).free
    if free < LEAST_FREE_BYTES:
        raise ConfigError(f"Only {free // 1_000_000} MB are free at {home}; make room.")
    return f"{home}, {free // 1_000_000_000} GB free"


def _check_search(home: Path) -> str:
    with sqlite3.connect(":memory:") as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
        except sqlite3.OperationalError as error:
            raise ConfigError(
                f"Expected an SQLite with FTS5, found {sqlite3.sqlite_version} without; "
                "use a Python whose sqlite3 has it."
            ) from error
    return f"SQLite {sqlite3.sqlite_version} with FTS5"


def _check_encoder(home: Path) -> str:
    from core.baseline.encoder import load_multilingual_encoder

    encoder = load_multilingual_encoder()
    encoder.encode(["a sentence"])
    return encoder.id


def _check_classifier(home: Path) -> str:
    with open_store(home) as store:
        version = store.versions.active()
    p = load_classifier(home, version).probability("Verdict: INCORRECT, it is hallucinated.")
    return f"version {version} answers (p = {p:.2f})"


def _check_ocr(home: Path) -> str:
    """Read an image of a word, in the process that reads files too."""
    stream = io.BytesIO()
    picture = Image.new("RGB", (360, 90), "white")
    ImageDraw.Draw(picture).text((20, 20), OCR_WORD, "black", ImageFont.load_default(40))
    picture.save(stream, "PNG")
    data = stream.getvalue()
    source = read_source(
        "doctor", "doctor.png", data, "image", Settings(), StopSignal(), ignore_progress
    )
    if OCR_WORD.casefold() not in source.text.casefold():
        raise ConfigError(
            f"Expected OCR to read “{OCR_WORD}”, found “{source.text}”; run make setup again."
        )
    return f"RapidOCR {importlib.metadata.version('rapidocr')} reads"


def _check_sandbox(home: Path) -> str:
    if off := explain_unavailable():
        raise ConfigError(f"{off} All else works; install bubblewrap to check code by running it.")
    return "code in answers can be run, walled off by bubblewrap"


def _check_web(home: Path) -> str:
    """Check whether audits can search the web, by one query to the chosen provider."""
    with open_store(home) as store:
        choice = load_web_choice(store)
    if not choice.provider:
        return "off: no provider is chosen under Settings, Web search; nothing is ever sent"
    works, words = try_search(choice, load_keys(os.environ, PROJECT_ROOT), StopSignal())
    if not works:
        raise ConfigError(f"{words} Until it works audits go by their own documents alone.")
    return f"on. {words}"


def _check_training(home: Path) -> str:
    names = ("torch", "sentence-transformers", "setfit")
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def _check_login(home: Path) -> str:
    """Check whether people must log in, and whether their identity providers answer."""
    login = load_login((Path.home(), PROJECT_ROOT))
    if login is None:
        return "off: whoever opens the page gives a name and is trusted"
    for address in login.providers.values():
        check_provider(address)
    where = f" at {login.origin}" if login.origin else ""
    hosts = ", ".join(urlsplit(address).netloc for address in login.providers.values())
    return f"on{where}, by {hosts}"


def _find_models(home: Path) -> str:
    """List the language models that run on this computer; having none is no fault."""
    models = [
        f"{server.name} at {server.address} ({', '.join(model.name for model in server.models)})"
        for server in find_servers()
    ]
    if find_weights():
        models.append(f"the small one of `make local-model` ({MODEL})")
    return "; ".join(models) or "none runs here; `make local-model` adds a very small one"


DOCTOR_CHECKS: tuple[tuple[str, Callable[[Path], str]], ...] = (
    ("Python", lambda home: sys.version.split()[0]),
    ("packages", _check_packages),
    ("home", _check_home),
    ("search", _check_search),
    ("encoder", _check_encoder),
    ("classifier", _check_classifier),
    ("OCR", _check_ocr),
    ("code sandbox", _check_sandbox),
    ("local models", _find_models),
    ("web search", _check_web),
    ("retraining", _check_training),
    ("login", _check_login),
)
