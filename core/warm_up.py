"""Loads in the background what a first check would otherwise wait for."""

from __future__ import annotations

from pathlib import Path

from core.config import ENCODER_DIR
from core.store import open_store

SAMPLE = "The tower is 412 m tall and was opened on 14 May 1932 by about two hundred people."


def warm_up(home: Path) -> None:
    """Load what a first check would wait for: languages, encoder, classifier, units, numbers.

    Languages first: a case is stored with its own, so the click itself waits for them.

    Raises:
        ConfigError: the encoder or the active classifier cannot be loaded.
    """
    from core.intake.language import language_of

    language_of(SAMPLE)
    import core.engine  # noqa: F401 - the first run would wait for it
    from core.builtin.reading import read
    from core.models.encoder import load_encoder
    from core.verdict.classifier import load_classifier

    encoder = load_encoder(ENCODER_DIR)
    encoder.encode([SAMPLE])
    with open_store(home) as store:
        load_classifier(home, store.versions.active())
    read(SAMPLE, "en")
