"""Archives of recorded debates are read in memory and with limits."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from core.evaluation.sets.answers import load_debates
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load

DEBATE = {"source": "灯塔很高。", "debate translation": "The tower is high.", "players": {}}


def pack(path: Path, files: dict[str, bytes], link: str = "") -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
        if link:
            about = tarfile.TarInfo("MAD/9.json")
            about.type, about.linkname = tarfile.SYMTYPE, link
            archive.addfile(about)


def test_debates_are_read_out_of_their_archive(tmp_path: Path) -> None:
    path = tmp_path / "Debates.tar.gz"
    pack(path, {"MAD/0.json": json.dumps(DEBATE).encode(), "MAD/note.txt": b"?"}, "/etc/hostname")
    [row] = load(load_debates, tmp_path)
    assert (row.response, row.label, row.question) == ("The tower is high.", None, "灯塔很高。")
    assert [one.name for one in tmp_path.rglob("*")] == ["Debates.tar.gz"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", r"Debates\.tar\.gz/MAD/0\.json, line 1: expected JSON"),
        (b"[]", "expected a JSON object"),
        (b'{"source": "a"}', "a text called debate translation"),
        (b" " * (16 * 2**20 + 1), "expected at most .* files of 16,777,216 bytes"),
    ],
)
def test_a_broken_or_huge_debate_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    pack(tmp_path / "Debates.tar.gz", {"MAD/0.json": data})
    with pytest.raises(InputError, match=said):
        load(load_debates, tmp_path)


def test_an_archive_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "Debates.tar.gz"
    pack(path, {"MAD/0.json": json.dumps(DEBATE).encode() * 50})
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(InputError, match=r"Debates\.tar\.gz"):
        load(load_debates, tmp_path)
