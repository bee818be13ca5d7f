"""The command line: one JSON object, exit codes, one line for bad input."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from core.__main__ import main

ROOT = Path(__file__).resolve().parent.parent
CATS = "Female cats tend to be right pawed, while male cats are more often left pawed."
KEYS = {
    "run_id", "status", "label", "cause", "p_hallucinated", "confidence", "rationale",
    "statements", "spans", "evidence", "turns", "seconds", "cost",
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
    code, found, err = check(
        capsys, "--claim", "Female cats tend to be left pawed.", "--document", cats
    )
    assert (code, err) == (0, "")
    assert set(found) >= KEYS
    assert (found["status"], found["label"], found["cause"]) == ("finished", "hallucinated", None)
    assert found["confidence"] == pytest.approx(
        max(found["p_hallucinated"], 1 - found["p_hallucinated"])
    )
    span = found["spans"][0]
    assert set(span) >= {"start", "end", "text", "p", "category", "source"}
    assert (
        "Female cats tend to be left pawed."[span["start"] : span["end"]] == span["text"] == "left"
    )
    passage = found["evidence"][0]
    assert set(passage) >= {"source", "page", "start", "end", "text", "score"}
    assert CATS[passage["start"] : passage["end"]] == passage["text"]
    turn = found["turns"][0]
    assert set(turn) >= {"debater", "round", "reply", "stance", "text", "quotes"}
    assert turn["reply"] in ("agree", "deny")
    assert found["seconds"] > 0
    assert found["cost"] == 0


def test_without_evidence_it_is_unclear_with_its_cause(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = check(capsys, "--claim", "Paris is the capital of France.")
    assert code == 0
    assert (found["label"], found["cause"]) == ("unclear", "no_evidence")
    assert found["p_hallucinated"] is None
    assert found["confidence"] is None


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


def test_a_chart_image_contradicts_through_ocr_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    image = Image.new("RGB", (900, 600), "white")
    draw = ImageDraw.Draw(image)
    draw.text((200, 20), "Harvest by farm, 2022 (tonnes)", "black", ImageFont.load_default(28))
    for number, (farm, value) in enumerate({"Lund": 640, "Berga": 385, "Torp": 512}.items()):
        left, top = 120 + 250 * number, 540 - value // 2
        draw.rectangle((left, top, left + 120, 540), "#447799")
        draw.text(
            (left + 60, top - 6), str(value), "black", ImageFont.load_default(22), anchor="mb"
        )
        draw.text((left + 60, 550), farm, "black", ImageFont.load_default(22), anchor="mt")
    path = tmp_path / "harvest.png"
    image.save(path)
    code, found, _ = check(
        capsys, "--claim", "Berga harvested 512 tonnes in 2022.", "--image", str(path)
    )
    assert code == 0
    assert found["label"] == "hallucinated", found["rationale"]
    assert any("512" in span["text"] for span in found["spans"])
    code, found, _ = check(
        capsys, "--claim", "Berga harvested 385 tonnes in 2022.", "--image", str(path)
    )
    assert found["label"] == "supported", found["rationale"]


BAD = [
    (["--claim", "", "--document", "{cats}"], "empty"),
    (["--claim", "  \n", "--document", "{cats}"], "empty"),
    (["--claim", "x", "--document", "{tmp}/none.pdf"], "none.pdf"),
    (["--claim", "x", "--document", "{tmp}/empty.txt"], "empty.txt"),
    (["--claim", "x", "--document", "{tmp}/broken.pdf"], "broken.pdf"),
    (["--claim", "x", "--image", "{tmp}/broken.png"], "broken.png"),
    (["--claim", "x", "--roster", "titans"], "titans"),
    (["--claim", "x", "--protocol", "duel"], "duel"),
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
]


@pytest.mark.parametrize(("arguments", "named"), BAD)
def test_bad_input_takes_one_line_and_exits_with_2(
    arguments: list[str], named: str, tmp_path: Path, cats: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4\n1 0 obj <<")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (tmp_path / "latin.txt").write_bytes("Café".encode("latin-1"))
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


def test_a_broken_file_beside_a_good_one_is_named_and_the_good_one_used(
    capsys: pytest.CaptureFixture[str], cats: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4\n1 0 obj <<")
    code, found, err = check(
        capsys,
        "--claim",
        "Female cats tend to be right pawed.",
        "--document",
        cats,
        "--document",
        str(tmp_path / "broken.pdf"),
    )
    assert code == 0
    assert found["label"] == "supported"
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
    code = main(["check", "--claim", "Female cats tend to be left pawed.", "--document", cats])
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
    monkeypatch.setattr("core.doctor.ENCODER_DIR", tmp_path / "nothing")
    code = main(["doctor"])
    out = capsys.readouterr().out
    assert code == 1
    assert "FAIL  encoder: Expected the exported encoder" in out
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


def test_as_a_program_a_check_imports_no_torch(cats: str, tmp_path: Path) -> None:
    program = (
        "import sys; from core.__main__ import main; "
        f"code = main(['check', '--claim', 'Cats sleep.', '--document', {cats!r}, '--json']); "
        "sys.stderr.write(','.join(m for m in ('torch', 'setfit', 'streamlit', 'litellm') "
        "if m in sys.modules)); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"COUNTERPOINT_HOME": str(tmp_path / "h"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout)["status"] == "finished"
