"""Rows with images: found beside the table, never outside the set's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from core.evaluation.sets.claims import (
    find_image,
    list_image_folders,
)


def picture(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), "white").save(path)
    return path


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "..", "", "a\0b"])
def test_no_row_leads_to_a_file_outside_the_folder(tmp_path: Path, name: str) -> None:
    picture(tmp_path / "secret.jpg")
    folder = tmp_path / "fakeddit"
    picture(folder / "images" / "a1.jpg")
    folders = list_image_folders(folder)
    assert find_image(folders, name) == ()
    assert find_image(folders, "a1") == (folder / "images" / "a1.jpg",)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "bingo"
    folder.mkdir()
    (folder / "a1.jpg").symlink_to(picture(tmp_path / "secret.jpg"))
    assert find_image(list_image_folders(folder), "a1") == ()
