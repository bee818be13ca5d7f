"""The command line: one JSON object, exit codes, one line for bad input."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import core.pipeline.doctor
from core.__main__ import main
from core.agents.roster_files import write_roster
from core.agents.rosters import SHIPPED_ROSTERS, make_single_model_roster
from core.baseline.encoder import load_multilingual_encoder
from core.documents.library import store_file
from core.llm.keys import SEARCH_KEY
from core.review.people import ensure_project
from core.runtime.config import Settings
from core.schema.rosters import AgentConfig
from core.store import open_store
from core.tools.web_search import WebSearchChoice, save_web_choice
from tests.llm.cast import Cast, role_of
from tests.llm.loopback import Loopback, Reply, loopback
from tests.tools.web.server import as_json, serving

pytestmark = pytest.mark.usefixtures("without_weights")

ROOT = Path(__file__).resolve().parent.parent
SECRET = "test-key-0123456789"
CATS = "Female cats tend to be right pawed, while male cats are more often left pawed."
LEFT, RIGHT = (f"Female cats tend to be {side} pawed." for side in ("left", "right"))
KEYS = {
    "run_id", "status", "label", "cause", "p_hallucinated", "confidence", "rationale",
    "statements", "spans", "evidence", "turns", "seconds", "cost", "models",
}  # fmt: skip


@pytest.fixture
def cats(tmp_path: Path) -> str:
    """A text file with cat facts."""
    path = tmp_path / "cats.txt"
    path.write_text(CATS)
    return str(path)


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    """(exit code, the object on stdout, stderr)."""
    code = main(["check", *arguments, "--json"])
    captured = capsys.readouterr()
    lines = captured.out.strip().splitlines()
    assert len(lines) <= 1, "exactly one JSON object"
    return code, json.loads(lines[0]) if lines else {}, captured.err


def test_a_check_prints_one_object(capsys: pytest.CaptureFixture[str], cats: str) -> None:
    code, found, err = check(capsys, "--claim", LEFT, "--document", cats)
    assert (code, err) == (0, "")
    assert set(found) >= KEYS
    assert (found["status"], found["label"], found["cause"]) == ("finished", "hallucinated", None)
    p = found["p_hallucinated"]
    assert found["confidence"] == pytest.approx(max(p, 1 - p))
    span, passage, turn = found["spans"][0], found["evidence"][0], found["turns"][0]
    assert set(span) >= {"start", "end", "text", "p", "category", "source"}
    assert LEFT[span["start"] : span["end"]] == span["text"] == "left"
    assert set(passage) >= {"source", "page", "start", "end", "text", "score"}
    assert CATS[passage["start"] : passage["end"]] == passage["text"]
    assert set(turn) >= {"debater", "round", "reply", "stance", "text", "quotes"}
    assert turn["reply"] in ("agree", "deny")
    assert found["seconds"] > 0
    assert (found["cost"], found["models"]) == (0, {})


def test_two_documents_of_one_name_are_told_apart(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    paths = [tmp_path / folder / "ferry.txt" for folder in ("one", "two")]
    for path, minutes in zip(paths, (25, 55), strict=True):
        path.parent.mkdir()
        path.write_text(f"The ferry takes {minutes} minutes.")
    documents = [word for path in paths for word in ("--document", str(path))]
    _, found, _ = check(capsys, "--claim", "The ferry takes 25 minutes.", *documents)
    sources = {passage["text"]: passage["source"] for passage in found["evidence"]}
    assert sources == {
        "The ferry takes 25 minutes.": "ferry.txt",
        "The ferry takes 55 minutes.": "ferry [2].txt",
    }
    assert {q["source"] for turn in found["turns"] for q in turn["quotes"]} <= {*sources.values()}


def test_without_evidence_it_is_unclear_with_its_cause(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = check(capsys, "--claim", "Paris is the capital of France.")
    assert (code, found["label"], found["cause"]) == (0, "unclear", "no_evidence")
    assert (found["p_hallucinated"], found["confidence"]) == (None, None)


def test_the_claim_may_come_from_a_file_to_the_letter(
    capsys: pytest.CaptureFixture[str], cats: str, tmp_path: Path
) -> None:
    claim = "  Female cats tend\r\nto be left pawed. 👩‍👩‍👧\n"
    (tmp_path / "claim.txt").write_bytes(claim.encode())
    _, found, _ = check(capsys, "--claim-file", str(tmp_path / "claim.txt"), "--document", cats)
    for item in (*found["statements"], *found["spans"]):
        assert claim[item["start"] : item["end"]] == item["text"]


def test_the_claim_may_come_from_standard_input(
    capsys: pytest.CaptureFixture[str], cats: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"Female cats tend to be right pawed."))
    monkeypatch.setattr(sys, "stdin", stream)
    _, found, _ = check(capsys, "--claim-file", "-", "--document", cats)
    assert found["label"] == "supported"


TWICE = ("--protocol", "sc_maks", "--without")
BAD = [
    (["--claim", "", "--document", "{cats}"], "empty"),
    (["--claim", "  \n", "--document", "{cats}"], "empty"),
    (["--claim", "x", "--document", "{tmp}/none.pdf"], "none.pdf"),
    (["--claim", "x", "--document", "{tmp}/empty.txt"], "empty.txt"),
    (["--claim", "x", "--document", "{tmp}/broken.pdf"], "broken.pdf"),
    (["--claim", "x", "--image", "{tmp}/broken.png"], "broken.png"),
    (["--claim", "x", "--roster", "titans"], "titans"),
    (["--claim", "x", "--protocol", "duel"], "duel"),
    (["--claim", "x", "--samples", "3"], "--samples"),
    (["--claim", "x", "--protocol", "adaptive", "--then", "single"], "single"),
    (["--claim", "x", "--protocol", "mad"], "built-in readers say the same in every round"),
    (["--claim", "x", *TWICE, "cooperation", "--without", "adversary"], "cooperation, adversary"),
    (["--claim-file", "{tmp}/none.txt"], "none.txt"),
    (["--claim-file", "{tmp}/latin.txt"], "latin.txt"),
    (["--claim", "abc \udcff def"], "--claim"),
    (["--claim", "x", "--role", "\udcff"], "--role"),
    (["--claim", "x", "--document", "{tmp}"], "folder"),
    (["--claim", "x", "--home", "~nosuchuser/x"], "nosuchuser"),
    (["--claim", "\u200b\u200d\ufeff \n"], "cannot be seen"),
    (["--claim", "x", "--home", ""], "--home"),
    (["--claim", "x", "--document", ""], "--document"),
    (["--claim", "x", "--document", "{cats}", "--image", ""], "--image"),
    (["--claim-file", ""], "--claim-file"),
    ([], "--claim"),
    (["--claim", "x", "--claim-file", "y"], "not allowed"),
    (["--claim", "x", "--colour", "red"], "--colour"),
    (["--claim", "x", "--model", "openai/x", "--roster", "builtin"], "not allowed with"),
    (["--claim", "x", "--model", "openai/x", "--roster", "ceda"], "not allowed with"),
    (["--claim", "x", "--api-base", "http://127.0.0.1:1/v1"], "--model beside --api-base"),
    (["--claim", "x", "--concurrency", "2"], "--model beside --concurrency"),
    (["--claim", "x", "--roster", "ollama", "--api-base", "http://x/v1"], "--model beside"),
    (["--claim", "x", "--model", "openai/x", "--api-base", "ftp://x"], "--api-base: expected an"),
    (["--claim", "x", "--model", "openai/x", "--api-base", "127.0.0.1:80"], "--api-base"),
    (["--claim", "x", "--model", "openai/x", "--api-base", "http://a:b@x/v1"], "--api-base"),
    (["--claim", "x", "--model", "openai/x", "--api-base", ""], "--api-base"),
    (["--claim", "x", "--model", ""], "--model"),
    (["--claim", "x", "--model", "a b"], "model"),
    (["--claim", "x", "--model", "sk-abcdefghijklmnop"], "--model: expected a model's name"),
    (["--claim", "x", "--model", "\udcff"], "--model"),
    (["--claim", "x", "--model", "no-such-model-anywhere"], "no-such-model-anywhere"),
    (["--claim", "x", "--model", "openai/gpt-4o", "--token-cap", "0"], "--token-cap"),
    (["--claim", "x", "--model", "openai/gpt-4o", "--token-cap", "-5"], "--token-cap"),
    (["--claim", "x", "--model", "openai/gpt-4o", "--token-cap", "1.5"], "--token-cap"),
    (["--claim", "x", "--model", "openai/gpt-4o", "--token-cap", "many"], "--token-cap"),
    (["--claim", "x", "--model", "openai/gpt-4o", "--token-cap", ""], "--token-cap"),
    (["--claim", "x", "--model", "openai/gpt-4o", "--token-cap", "9" * 30], "--token-cap"),
    (["--claim", "x", "--roster", ""], "--roster"),
    (["--claim", "x", "--roster", "address"], "name-of-your-model"),
    (["--claim", "x", "--roster", "{tmp}/none.json"], "none.json"),
    (["--claim", "x", "--roster", "{tmp}/broken.json"], "Roster, file"),
    (["--claim", "x", "--roster", "{tmp}/folder.json"], "folder.json"),
]


@pytest.mark.parametrize(("arguments", "named"), BAD)
def test_bad_input_takes_one_line_and_exits_with_2(
    arguments: list[str], named: str, tmp_path: Path, cats: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4\n1 0 obj <<")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (tmp_path / "latin.txt").write_bytes("Café".encode("latin-1"))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "folder.json").mkdir()
    filled = [part.format(cats=cats, tmp=tmp_path) for part in arguments]
    try:
        code = main(["check", *filled, "--json"])
    except SystemExit as ended:
        code = int(ended.code or 0)
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1, captured.err
    assert named in captured.err


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any key; the root in which the secrets file is looked for."""
    for name in list(os.environ):
        if name.endswith("_KEY") or name.startswith(("AWS_", "OPENAI_")):
            monkeypatch.delenv(name)
    root = tmp_path / "root"
    (root / ".streamlit").mkdir(parents=True)
    monkeypatch.setattr("core.__main__.PROJECT_ROOT", root)
    return root


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--model", "openai/gpt-4.1-mini"], "OPENAI_API_KEY"),
        (["--model", "gpt-4.1-mini"], "OPENAI_API_KEY"),
        (["--model", "anthropic/claude-haiku-4-5"], "ANTHROPIC_API_KEY"),
        (["--roster", "ceda"], "AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_a_missing_key_is_found_before_anything_is_read_or_stored(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str], no_keys: Path, home: Path
) -> None:
    code = main(["check", "--claim-file", "/nowhere", "--document", "/nowhere", *arguments])
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err.count("\n") == 1
    assert named in captured.err
    assert not home.exists()


def test_a_broken_secrets_file_is_one_sentence_and_no_matter_to_the_built_in_engine(
    capsys: pytest.CaptureFixture[str], cats: str, no_keys: Path
) -> None:
    (no_keys / ".streamlit" / "secrets.toml").write_text('OPENAI_API_KEY = "sk-abcdefgh\n')
    code, _, err = check(capsys, "--claim", "Cats sleep.", "--model", "openai/gpt-4.1-mini")
    assert code == 2
    assert err.startswith("Expected TOML in .streamlit/secrets.toml")
    assert err.count("\n") == 1
    assert "sk-abcdefgh" not in err
    code, _, err = check(capsys, "--claim", "Cats sleep.", "--document", cats)
    assert (code, err) == (0, "")


def asked_in(server: Loopback) -> set[str]:
    return {role_of(asked) for asked in server.asked}


def at(server: Loopback, *more: str) -> list[str]:
    return ["--model", "openai/loopback", "--api-base", server.base, *more]


def test_one_model_plays_every_speaking_role(
    capsys: pytest.CaptureFixture[str], cats: str, no_keys: Path
) -> None:
    before = dict(os.environ)
    (no_keys / ".streamlit" / "secrets.toml").write_text(f'COUNTERPOINT_API_KEY = "{SECRET}"\n')
    with loopback(Cast()) as server:
        who = at(server, "--concurrency", "1")
        code, found, err = check(capsys, "--claim", LEFT, "--document", cats, *who)
    assert (code, err) == (0, "")
    assert (found["status"], found["label"]) == ("finished", "hallucinated")
    assert found["roster"] == "openai/loopback"
    assert asked_in(server) >= {"context", "debate", "judge", "spans"}
    used, calls = found["models"]["openai/loopback"], len(server.asked)
    assert used["calls"] == calls
    assert (used["tokens_in"], used["tokens_out"]) == (100 * calls, 20 * calls)
    assert (used["cost"], found["cost"]) == (None, None)
    sent = [{name.lower(): value for name, value in a.headers.items()} for a in server.asked]
    assert {headers["authorization"] for headers in sent} == {f"Bearer {SECRET}"}
    assert SECRET not in json.dumps(found)
    added = {name: os.environ[name] for name in os.environ if name not in before}
    assert SECRET not in str(added)


def test_an_image_is_shown_to_the_model(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, no_keys: Path
) -> None:
    path = tmp_path / "chart.png"
    Image.new("RGB", (300, 200), "white").save(path)
    with loopback(Cast()) as server:
        given = ("--claim", "Norway imported the most.", "--image", str(path), *at(server))
        code, found, _ = check(capsys, *given)
    assert code == 0, found
    assert {"image_question", "image_reading"} <= asked_in(server)
    assert any(asked.images for asked in server.asked)


def test_for_people_the_models_are_told_and_an_unknown_cost_is_no_zero(
    capsys: pytest.CaptureFixture[str], cats: str, no_keys: Path
) -> None:
    with loopback(Cast()) as server:
        command = ["check", "--claim", "Cats sleep.", "--document", cats, *at(server)]
        code = main(command)
        first = len(server.asked)
        out = capsys.readouterr().out
        assert code == 0
        assert f"openai/loopback: {first} calls, " in out
        assert "cost unknown" in out
        main(command)
    again, more = len(server.asked) - first, 2 * first - len(server.asked)
    assert more > 0, "equal calls at temperature 0 are not paid for twice"
    told = f"openai/loopback: {again} calls ({more} more answered by earlier runs), "
    assert told in capsys.readouterr().out


def test_a_run_without_a_verdict_is_unclear_with_its_cause(
    capsys: pytest.CaptureFixture[str], cats: str, no_keys: Path
) -> None:
    def outcome(server: Loopback) -> tuple[int, dict[str, Any]]:
        code, found, _ = check(capsys, "--claim", "Cats sleep.", "--document", cats, *at(server))
        return code, found

    with loopback(Reply(status=401, message="no such key")) as server:
        code, found = outcome(server)
    assert found["label"] not in ("supported", "hallucinated")
    assert "refused the key" in found["cause_words"]
    assert code == (0 if found["status"] == "finished" else 1)
    with loopback(Cast({"judge": Reply("I cannot tell.")})) as server:
        code, found = outcome(server)
    assert (code, found["label"], found["cause"]) == (0, "unclear", "unreadable_reply")
    with loopback(Cast({"judge": Reply(status=500)})) as server:
        code, found = outcome(server)
    assert (code, found["label"], found["cause"]) == (0, "unclear", "agent_failed")
    assert "500" in found["cause_words"]


def test_a_token_cap_is_kept(capsys: pytest.CaptureFixture[str], cats: str, no_keys: Path) -> None:
    with loopback(Cast()) as server:
        capped = at(server, "--token-cap", "1")
        code, found, _ = check(capsys, "--claim", "Cats sleep.", "--document", cats, *capped)
    assert server.asked == []
    assert (code, found["label"], found["cause"]) == (0, "unclear", "budget_reached")
    assert "--token-cap" in found["cause_words"]
    assert found["models"] == {}


def test_a_rosters_file_may_be_given(
    capsys: pytest.CaptureFixture[str], cats: str, no_keys: Path, tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    with loopback(Cast()) as server:
        seat = AgentConfig("openai/loopback", server.base, max_tokens=100)
        sheet = replace(SHIPPED_ROSTERS["builtin"].with_seat("debater Ben", seat), name="mine")
        path.write_bytes(write_roster(sheet, "0123456789ab"))
        given = ("--claim", LEFT, "--document", cats, "--roster", str(path))
        code, found, err = check(capsys, *given)
    assert (code, found["roster"]) == (0, "mine")
    assert asked_in(server) == {"debate"}
    agents = {turn["agent"] for turn in found["turns"]}
    assert agents == {"Value checker", "loopback", "Entailment reader"}
    assert "0123456789ab" in err
    assert err.count("\n") == 1


def test_a_kept_roster_may_be_given(
    capsys: pytest.CaptureFixture[str], cats: str, no_keys: Path, home: Path
) -> None:
    with loopback(Cast()) as server:
        with open_store(home) as store:
            sheet = replace(make_single_model_roster("openai/loopback", server.base), name="ours")
            store.rosters.save(sheet, "Mira", 1.0)
        given = ("--claim", "Cats sleep.", "--document", cats, "--roster", "ours")
        code, found, _ = check(capsys, *given)
    assert (code, found["roster"]) == (0, "ours")
    assert server.asked


@pytest.mark.slow
def test_as_a_program_it_writes_one_object_and_not_a_word_of_a_library(
    cats: str, tmp_path: Path
) -> None:
    with loopback(Cast()) as server:
        command = f"CORE check --claim '{LEFT}' --document {cats} --json "
        command += f"--model openai/loopback --api-base {server.base}"
        done = in_shell(tmp_path / "h", command)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["label"] == "hallucinated"


def test_help_tells_about_models(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "--help"])
    assert ended.value.code == 0
    words = capsys.readouterr().out
    for part in ("--model", "--api-base", "--token-cap", "secrets.toml", "exit code", "ceda"):
        assert part in words


def test_a_broken_file_beside_a_good_one_is_named_and_the_good_one_used(
    capsys: pytest.CaptureFixture[str], cats: str, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.4\n1 0 obj <<")
    files = ("--document", cats, "--document", str(broken))
    code, found, err = check(capsys, "--claim", RIGHT, *files)
    assert (code, found["label"]) == (0, "supported")
    assert "broken.pdf" in err
    assert err.count("\n") == 1


def test_a_home_of_its_own_is_used(
    capsys: pytest.CaptureFixture[str], cats: str, tmp_path: Path
) -> None:
    home = tmp_path / "elsewhere"
    check(capsys, "--claim", "Cats sleep.", "--document", cats, "--home", str(home))
    assert (home / "counterpoint.db").is_file()
    assert len(list((home / "documents").iterdir())) == 1


def test_plain_output_is_for_people(capsys: pytest.CaptureFixture[str], cats: str) -> None:
    code = main(["check", "--claim", LEFT, "--document", cats])
    out = capsys.readouterr().out
    assert code == 0
    assert out.startswith("HALLUCINATED  p(hallucinated) = 0.")
    assert "wrong: left: the evidence says right" in out


def test_doctor_says_what_works(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor"])
    out = capsys.readouterr().out
    assert code == 0, out
    assert "FAIL" not in out
    for name in ("Python", "packages", "home", "search", "encoder", "classifier", "OCR"):
        assert f"ok    {name}: " in out


def test_doctor_says_what_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = partial(load_multilingual_encoder, tmp_path / "nothing")
    monkeypatch.setattr("core.baseline.encoder.load_multilingual_encoder", missing)
    code = main(["doctor"])
    out = capsys.readouterr().out
    assert code == 1
    assert "FAIL  encoder: Expected" in out
    assert "make setup" in out


def in_shell(home: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a shell, which closes streams and fills devices."""
    return subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", command.replace("CORE", f"{sys.executable} -m core")],
        cwd=ROOT,
        env={"COUNTERPOINT_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "err"),
    [
        ("CORE check --claim-file - <&-", 2, "Expected the claim on standard input"),
        ("CORE check --claim '' 2>&-", 2, ""),
        ("CORE check --claim '' 2>/dev/full", 2, ""),
        ("CORE check 2>&-", 2, ""),
        ("CORE doctor | true", 1, ""),
        ("CORE doctor >/dev/full", 1, "The result cannot be written: No space left on device"),
        ("CORE doctor >&-", 1, "The result cannot be written: standard output is closed"),
        ("CORE check --claim x --json >/dev/full", 1, "The result cannot be written"),
        ("CORE check --claim x --json | true", 1, ""),
        ("CORE doctor --home ''", 2, "--home"),
    ],
)
def test_streams_that_are_closed_or_full_cost_one_line_at_most(
    tmp_path: Path, command: str, code: int, err: str
) -> None:
    done = in_shell(tmp_path / "h", command)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.count("\n") == bool(err), done.stderr
    assert err in done.stderr


@pytest.mark.slow
def test_as_a_program_a_check_imports_nothing_that_only_learning_needs(
    cats: str, tmp_path: Path
) -> None:
    program = (
        "import sys; from core.__main__ import main; "
        f"code = main(['check', '--claim', 'Cats sleep.', '--document', '{cats}', '--json']); "
        "slow = 'torch setfit streamlit litellm sklearn pandas mapie cleanlab'.split(); "
        "sys.stderr.write(','.join(m for m in slow if m in sys.modules)); sys.exit(code)"
    )
    done = in_shell(tmp_path / "h", f'{sys.executable} -c "{program}"')
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["status"] == "finished"


def test_documents_that_hold_nothing_on_it_are_not_called_missing(
    cats: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found, _ = check(capsys, "--claim", "😀😀😀", "--document", cats)
    assert (code, found["label"], found["cause"]) == (0, "unclear", "not_addressed")


def tools(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of `tools`."""
    code = main(["tools", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_tools_are_listed_with_what_they_are_for(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = tools(capsys)
    assert (code, err) == (0, "")
    assert "calculator(text, formula?, question?, language?)" in out
    assert "Works out every calculation" in out
    assert "Off here:" in out  # translate needs a language model
    code, out, _ = tools(capsys, "--json")
    told = {tool["name"]: tool for tool in json.loads(out)}
    assert told["calculator"]["off"] == ""
    assert told["translate"]["off"]
    assert [example["label"] for example in told["units"]["examples"]]


def test_a_tool_is_shown_with_inputs_that_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = tools(capsys, "calculator", "--json")
    assert code == 0
    for example in json.loads(out)["examples"]:
        given = json.dumps(example["input"])
        code, told, _ = tools(capsys, "calculator", "--input", given, "--json")
        assert (code, json.loads(told)["label"]) == (0, example["label"])
    assert "--input '{" in tools(capsys, "calculator")[1]


def test_a_tool_is_used_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    given = '{"text": "Half of 90 is 46."}'
    code, out, err = tools(capsys, "calculator", "--input", given, "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert (told["label"], told["outcome"], told["instead"]) == ("hallucinated", "found", "45")
    assert (told["start"], told["end"]) == (14, 16)
    assert told["gave"]["equations"][0]["worked_out"] == "45"
    code, out, _ = tools(capsys, "calculator", "--input", given)
    assert code == 0
    assert "wrong: “46”: it should say 45" in out
    code, out, _ = tools(capsys, "calculator", "--input", '{"text": "No sum."}')
    assert (code, out.splitlines()[0]) == (0, "UNCLEAR")


def test_a_tool_reads_its_input_from_standard_input() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "core", "tools", "calculator", "--input", "-", "--json"],
        input='{"text": "三加五等于九"}'.encode(),
        capture_output=True,
        cwd=ROOT,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert json.loads(run.stdout)["instead"] == "8"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "Expected one of the tools calculator"),
        (["calculator", "--input", "{"], "Expected a JSON object with text"),
        (["calculator", "--input", '{"words": 1}'], "Expected a JSON object with text"),
        (["calculator", "--input", ""], "found an empty one"),
        (["calculator", "--input", '{"text": "3", "formula": "x+1"}'], "“x” is not known"),
        (["--input", "{}"], "Expected a tool's name before --input"),
        (["calculator", "--home", ""], "Expected a path in --home"),
        (["calculator", "--inptu", "{}"], "unrecognized arguments"),
    ],
)
def test_bad_input_to_a_tool_takes_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = tools(capsys, *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_a_tool_that_is_off_here_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown, _ = tools(capsys, "translate", "--json")
    given = json.dumps(json.loads(shown)["examples"][0]["input"])
    code, out, err = tools(capsys, "translate", "--input", given)
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    code, out, _ = tools(capsys, "translate", "--input", given, "--json")
    told = json.loads(out)
    assert (code, told["outcome"], told["label"]) == (1, "off", "unclear")


def test_a_tool_alone_is_measured_on_a_set(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "haluagent" / "sentence"
    folder.mkdir(parents=True)
    claims = [
        {"claim": {"math_calculation": "3 * 4", "calculated_answer": "12"}, "label": True},
        {"claim": {"math_calculation": "3 * 5", "calculated_answer": "16"}, "label": False},
        {"claim": {"math_calculation": "2x = 10", "calculated_answer": "x = 5"}, "label": True},
        {"claim": {"math_calculation": "the ones", "calculated_answer": "12"}, "label": True},
    ]
    row = {"prompt": "How many?", "response": "", "label": False, "claims": claims}
    (folder / "math.jsonl").write_text(json.dumps(row) + "\n")
    asked = ["evaluate", "--dataset", "haluagent", "--task", "sentence_math", "--json"]
    asked += ["--path", str(tmp_path)]
    assert main([*asked, "--tool", "calculator"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["answered"], told["roster"]) == (4, 3, "tool-calculator")
    assert told["metrics"]["recall"]["value"] == told["metrics"]["precision"]["value"] == 1.0
    assert told["causes"] == {"the tool reads nothing here": 1}
    assert told["trivial"]["always_hallucinated"]["accuracy"]["value"] == 0.25
    assert main([*asked, "--tool", "translate"]) == 2
    assert main([*asked, "--tool", "calculator", "--system", "majority"]) == 2
    assert "found both" in capsys.readouterr().err


def test_a_tool_searches_the_homes_library(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "facts.txt"
    page.write_text("The Orrin bridge is 412 m long.", encoding="utf-8")
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store_file(store, home, project.id, page.name, page.read_bytes(), "Mira", 1.0, Settings())
    given = '{"query": "How long is the Orrin bridge?"}'
    code, out, _ = tools(capsys, "search", "--input", given, "--home", str(home), "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["outcome"], told["label"]) == ("found", "unclear")
    assert [source["title"] for source in told["gave"]["sources"]] == ["facts.txt"]


def test_a_tool_compares_with_the_built_in_readers_and_makes_no_home(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = json.dumps({"statement": LEFT, "context": CATS})
    code, out, _ = tools(capsys, "match", "--input", given, "--home", str(home), "--json")
    told = json.loads(out)
    assert (code, told["outcome"], told["label"]) == (0, "found", "hallucinated")
    assert not home.exists()


def test_a_tool_without_sources_and_provider_is_off_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = tools(capsys, "search", "--input", '{"query": "How long is it?"}')
    assert (code, out) == (1, "")
    assert "no provider of web searches is chosen" in err


@pytest.fixture
def _web_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other check is made."""
    looks = tuple(look for look in core.pipeline.doctor.DOCTOR_CHECKS if look[0] == "web search")
    assert looks
    monkeypatch.setattr("core.pipeline.doctor.DOCTOR_CHECKS", looks)


def choose_web(home: Path, choice: WebSearchChoice) -> None:
    with open_store(home) as store, store.writing():
        save_web_choice(store, choice)


@pytest.mark.usefixtures("_web_alone")
def test_doctor_says_whether_the_web_can_be_searched(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    assert main(["doctor"]) == 0
    assert "ok    web search: off: no provider is chosen" in capsys.readouterr().out
    result = {"title": "Wikipedia", "url": "https://a.org/", "content": "An encyclopedia."}
    with serving(as_json({"results": [result]})) as server:
        choose_web(home, WebSearchChoice("searxng", server.origin))
        assert main(["doctor"]) == 0
        assert "ok    web search: on. SearXNG found 1" in capsys.readouterr().out
    assert main(["doctor"]) == 1
    assert "FAIL  web search: 127.0.0.1 could not be asked" in capsys.readouterr().out


@pytest.mark.usefixtures("_web_alone")
def test_doctor_shows_no_key(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_web(home, WebSearchChoice("google", cx="engine:1"))
    assert main(["doctor"]) == 1
    assert f"expected {SEARCH_KEY}, found none" in capsys.readouterr().out
    monkeypatch.setenv(SEARCH_KEY, "AIza secret-0123")  # with a blank, so that nobody is asked
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "holds a letter that no key has" in out
    assert "secret-0123" not in out
