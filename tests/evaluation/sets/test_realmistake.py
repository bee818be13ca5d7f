"""ReaLMistake: rows come out of zips under a password, and nothing is unpacked."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from core.evaluation.sets.marked_texts import (
    ZIP_PASSWORD,
    Detector,
    load_recorded_cases,
    load_recorded_verdicts,
    load_responses,
)
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load

ANSWER: dict[str, object] = {
    "input": "Write a sum about 3 boats.",
    "llm_response": "3 boats and 4 boats make 8.",
    "error_label": "error",
    "metadata": {"id": "sum_1"},
}
RIGHT = {**ANSWER, "llm_response": "It is 7.", "error_label": "no_error", "metadata": {"id": "s2"}}


def step(crc: int, byte: int) -> int:
    return zlib.crc32(bytes([byte]), crc ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


def locked(data: bytes, password: bytes) -> bytes:
    """The bytes under the cipher that zips have had from the beginning."""
    keys = [0x12345678, 0x23456789, 0x34567890]

    def turn(byte: int) -> None:
        keys[0] = step(keys[0], byte)
        keys[1] = ((keys[1] + (keys[0] & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        keys[2] = step(keys[2], keys[1] >> 24)

    for byte in password:
        turn(byte)
    done = bytearray()
    for byte in data:
        mask = (keys[2] | 2) & 0xFFFF
        done.append(byte ^ ((mask * (mask ^ 1)) >> 8) & 0xFF)
        turn(byte)
    return bytes(done)


def write_locked(path: Path, name: str, text: str, password: str) -> None:
    """A zip of one file, stored, under a password; zipfile reads such files but writes none."""
    data = text.encode()
    crc = zlib.crc32(data)
    body = locked(bytes(11) + bytes([crc >> 24]) + data, password.encode())
    about = struct.pack("<HHHHHIIIHH", 20, 1, 0, 0, 33, crc, len(body), len(data), len(name), 0)
    local = b"PK\x03\x04" + about + name.encode() + body
    central = b"PK\x01\x02\x14\x00" + about + bytes(14) + name.encode()
    end = struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)
    path.write_bytes(local + central + b"PK\x05\x06" + end)


def lines(rows: Sequence[Mapping[str, object]]) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def test_answers_are_read_under_the_password_and_nothing_is_unpacked(tmp_path: Path) -> None:
    member = "data/math/AModel.jsonl"
    write_locked(tmp_path / "data.zip", member, lines([ANSWER, RIGHT]), ZIP_PASSWORD)
    wrong, right = load(load_responses, tmp_path, "responses")
    assert (wrong.label, right.label) == ("hallucinated", "supported")
    assert wrong.response == "3 boats and 4 boats make 8."
    assert wrong.documents == (wrong.group,) == ("Write a sum about 3 boats.",)
    assert wrong.place.endswith("data.zip/data/math/AModel.jsonl, line 1")
    assert [path.name for path in tmp_path.rglob("*")] == ["data.zip"]


def test_another_password_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    write_locked(tmp_path / "data.zip", "data/A.jsonl", lines([ANSWER]), "another")
    with pytest.raises(InputError, match=r"data\.zip/data/A\.jsonl"):
        load(load_responses, tmp_path, "responses")


def test_verdicts_of_detectors_are_joined_to_the_answers(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("data/math/AModel.jsonl", lines([ANSWER, RIGHT]))
    said: list[dict[str, object]] = [
        {"prediction": "no_error", "metadata": {"id": "sum_1"}},
        {"prediction": None, "metadata": {"id": "s2"}},
        {"prediction": "error", "metadata": {"id": "elsewhere"}},
    ]
    with zipfile.ZipFile(tmp_path / "error_detection_outputs.zip", "w") as archive:
        archive.writestr("error_detection_outputs/simple/math/Judge/p1.jsonl", lines(said))
    first, second = load(load_recorded_verdicts, tmp_path, "recorded")
    assert (first.label, first.recorded) == ("hallucinated", "supported")
    assert (second.label, second.recorded) == ("supported", "unclear")
    assert first.recorded_by == "simple/math/Judge/p1"


def test_cases_hold_what_each_detector_said_under_each_plain_prompt(tmp_path: Path) -> None:
    write_locked(tmp_path / "data.zip", "data/math/A.jsonl", lines([ANSWER, RIGHT]), ZIP_PASSWORD)
    about = {"id": "sum_1", "task_name": "sums"}
    said = {"prediction": "error", "response": "8 is wrong.", "metadata": about}
    lost = {"prediction": None, "response": "?", "metadata": {**about, "id": "s2"}}
    folder = "error_detection_outputs/simple_prompt_baseline/math/A/Judge/"
    member = f"{folder}baseline_errordetection_prompt_2.jsonl"
    outputs = tmp_path / "error_detection_outputs.zip"
    write_locked(outputs, member, lines([said, lost]), ZIP_PASSWORD)
    first, second = load_recorded_cases(tmp_path)
    (judge,) = first.said
    assert judge == Detector("Judge", "2")
    assert (first.kind, first.said[judge].label) == ("sums", "hallucinated")
    assert first.said[judge].reasoning == "8 is wrong."
    assert second.said[judge].label == "unclear"
