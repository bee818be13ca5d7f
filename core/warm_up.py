"""Loads in the background what a first check would otherwise wait for."""

from __future__ import annotations

from pathlib import Path

from core.store import open_store

SAMPLE = "The tower is 412 m tall and was opened on 14 May 1932 by about two hundred people."


def warm_up(home: Path) -> None:
    """Load what a first check would wait for: languages, encoder, classifier, units, numbers.

    Languages first: a case is stored with its own, so the click itself waits for them.

    Raises:
        ConfigError: the encoder or the active classifier cannot be loaded.
    """
    from core.documents.language import language_of

    language_of(SAMPLE)
    import core.engine  # noqa: F401 - the first run would wait for it
    from core.baseline.encoder import load_multilingual_encoder
    from core.baseline.readers import assessor_of, reader_in_use
    from core.verdict.classifier import load_classifier

    load_multilingual_encoder().encode([SAMPLE])
    with open_store(home) as store:
        load_classifier(home, store.versions.active())
        reader = reader_in_use(store)
    assessor_of(home, reader).reader.read([(SAMPLE, SAMPLE)])
