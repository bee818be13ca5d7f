"""Models on this computer: found, put in use by one click, tested; New check begins with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.agents.qualification import Qualification, save_qualification
from core.agents.rosters import make_single_model_roster
from core.llm.servers import FoundServer, ServedModel
from core.review.people import ensure_project
from core.store import open_store
from tests.llm.loopback import Asked, Loopback, Reply, loopback
from tests.pages.conftest import OpenApp
from tests.pages.driving import press, put
from tests.waiting import wait_for

pytestmark = pytest.mark.timing

PAGE = "pages/setup/settings.py"
NAME = "tiny (llama.cpp)"


@pytest.fixture(autouse=True)
def _project(home: Path) -> None:
    """A project whose admin is Mira."""
    with open_store(home) as store:
        ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")


def found(monkeypatch: pytest.MonkeyPatch, *servers: FoundServer) -> None:
    monkeypatch.setattr("components.setup.local_models._servers", lambda: servers)


def served(server: Loopback) -> FoundServer:
    return FoundServer("llama.cpp", server.base, (ServedModel("tiny", 4096),))


def obliging(asked: Asked) -> Reply:
    """A small model: it says OK when told to, and that everything is true."""
    return Reply("OK" if "single word OK" in asked.prompt else "It is true.\nVerdict: 1")


def until_tested(at: AppTest) -> AppTest:
    wait_for(lambda: any("Tested" in c.value for c in at.run().caption), "the model's test")
    return at.run()  # it may have ended after the page had drawn how the model stands


def test_where_nothing_runs_the_page_says_how_to_get_a_model(
    app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(monkeypatch)
    monkeypatch.setattr("components.setup.local_models.SHIPPED_ROSTERS", {})
    at = app(PAGE)
    assert any("make local-model" in caption.value for caption in at.caption)


def test_one_click_puts_a_model_in_use_tests_it_and_new_check_begins_with_it(
    app: OpenApp, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with loopback(obliging) as server:
        found(monkeypatch, served(server))
        at = app(PAGE)
        assert any("tests it at once" in caption.value for caption in at.caption), "said before"
        at = until_tested(press(at, "local_models.use.0"))
        assert not at.error
    with open_store(home) as store:
        (project,) = store.projects.all()
        kept = store.rosters.get(NAME)
    assert project.roster == NAME
    assert kept is not None
    assert (kept.judge.window, kept.judge.price_in, kept.image_reader.model) == (4096, 0.0, "")
    shown = "\n".join(item.proto.body for item in at.get("html"))
    assert "tiny: judge test" in shown
    assert "✗ failed: 6 of 12 right; 10 are needed" in shown
    assert any("its verdicts are shown as Unclear" in warning.value for warning in at.warning)
    at.switch_page("pages/check/new.py").run()
    assert at.selectbox(key="new.roster").value == NAME
    (line,) = [caption.value for caption in at.caption if "Every speaking role" in caption.value]
    assert line.startswith(":material/computer:"), "it runs on this computer"
    assert any(
        "tiny failed the judge test, so the verdict will be Unclear" in caption.value
        for caption in at.caption
    ), "said before the check"
    assert at.selectbox(key="new.roster").options[-1] == NAME, "names alone, so that none is cut"
    monkeypatch.setattr("components.app.state.warm_up_models", lambda models: None)
    put(at, "new.roster", "ceda")
    assert any(caption.value.startswith(":material/cloud:") for caption in at.caption)


def test_a_lead_lets_a_failed_judge_count_and_takes_that_back(
    app: OpenApp, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with loopback(obliging) as server:
        found(monkeypatch, served(server))
        at = until_tested(press(app(PAGE), "local_models.use.0")).run()
    (waive,) = [one for one in at.button if str(one.key).startswith("judge_test.waive.")]
    at = waive.click().run()
    assert any("Mira lets its verdicts count" in warning.value for warning in at.warning)
    (enforce,) = [one for one in at.button if str(one.key).startswith("judge_test.enforce.")]
    at = enforce.click().run()
    assert any("its verdicts are shown as Unclear" in warning.value for warning in at.warning)


def test_the_page_tells_a_test_with_another_prompt_or_other_settings_from_one_with_these(
    app: OpenApp, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(monkeypatch)
    with open_store(home) as store, store.writing():
        (project,) = store.projects.all()
        roster = make_single_model_roster("openai/tiny", "http://127.0.0.1:9/v1")
        store.rosters.save(roster, "Mira", 1.0)
        store.projects.save(replace(project, roster=roster.name))
        failed = Qualification("openai/tiny", 0, 12, 12, 1.0, "earlier", 0.0, 1)
        save_qualification(store, roster.judge, failed)
    at = app(PAGE)
    (told,) = [one.value.replace("\\", "") for one in at.warning if "judge test" in one.value]
    assert told.startswith("tiny failed the judge test: 0 of 12 right, 12 unreadable (tested with")
    assert "another prompt and at most 1 token a reply" in told
    assert "its verdicts are shown as Unclear" in told
    with open_store(home) as store, store.writing():
        save_qualification(store, roster.judge, replace(failed, right=12, unreadable=0))
    at.run()
    assert not at.warning
    assert any("has not taken the judge test with this prompt" in c.value for c in at.caption)


def test_an_annotator_cannot_change_what_new_checks_use(
    app: OpenApp, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(home) as store:
        (project,) = store.projects.all()
        store.projects.save_note("person", "Ann")
    with loopback(obliging) as server:
        found(monkeypatch, served(server))
        at = app(PAGE)
        assert not server.asked
    assert "local_models.use.0" not in {button.key for button in at.button}
    assert any("can choose the models of new checks" in c.value for c in at.caption)
    with open_store(home) as store:
        assert store.projects.get(project.id) == project
