"""A run that was scored again under another version says by which its verdict is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from core.learning.retrain import rescore
from core.store import open_store
from core.store.versions import Version
from core.verdict.classifier import Head, save_head, version_folder

OpenApp = Callable[..., AppTest]
WIDTH = 384  # of the embedded encoder


def test_history_and_the_run_show_whose_verdict_it_is(
    app: OpenApp, run_id: str, home: Path
) -> None:
    at = app("pages/check/history.py")
    assert "Classifier" not in at.dataframe[0].value.columns, "all are the seed's"
    save_head(version_folder(home, "v1"), Head((0.0,) * WIDTH, -3.0), {})
    with open_store(home) as store:
        store.versions.add(Version("v1", 1.0, "Mira", {}))
        assert rescore(store, home, "v1", by="Mira").changed == 1
    at.run()
    table = at.dataframe[0].value
    assert list(table["Classifier"]) == ["v1"]
    assert "Unclear" in table["Verdict"][0], "the judge called it hallucinated"
    at = app("pages/check/run.py", run=run_id)
    shown = " ".join(str(getattr(html, "value", "")) for html in at.get("html"))
    assert "Scored again by classifier v1" in shown
    assert "The run had ended with hallucinated" in shown
    assert "by seed" in shown
