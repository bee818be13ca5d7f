"""Rows with images: found beside the table, never outside the set's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from core.evaluation.sets.claims import (
    image_beside,
    image_folders,
    load_bingo,
    load_fakeddit,
    load_hallusionbench,
    load_hallusionbench_recorded,
)
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load, write_lines, write_list, write_table


def picture(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), "white").save(path)
    return path


POST = {
    "author": "anna",
    "clean_title": "a lighthouse in the snow",
    "hasImage": "True",
    "id": "a1",
    "image_url": "http://example.org/a1.jpg",
    "title": "A lighthouse in the snow!",
    "2_way_label": "1",
    "3_way_label": "0",
    "6_way_label": "0",
}


def test_a_post_has_its_title_its_label_and_its_image(tmp_path: Path) -> None:
    path = tmp_path / "multimodal_test_public.tsv"
    posts = [POST, {**POST, "id": "b2", "clean_title": "a whale on the roof", "2_way_label": "0"}]
    untitled = {**POST, "id": "d4", "title": " ", "clean_title": ""}
    write_table(path, [*posts, {**POST, "id": "c3"}, untitled], "\t")
    write_table(tmp_path / "all_test_comments.tsv", [{"id": "x", "body": "so"}], "\t")
    picture(tmp_path / "images" / "a1.jpg")
    picture(tmp_path / "public_image_set" / "b2.png")
    true, fake, bare = load(load_fakeddit, tmp_path, "", "test")
    assert (true.response, true.label) == ("a lighthouse in the snow", "supported")
    assert (fake.response, fake.label) == ("a whale on the roof", "hallucinated")
    assert [image.name for image in (*true.images, *fake.images)] == ["a1.jpg", "b2.png"]
    assert bare.images == ()
    write_table(path, [{**POST, "2_way_label": "2"}], "\t")
    with pytest.raises(InputError, match=r"public\.tsv, line 2: expected 2_way_label"):
        load(load_fakeddit, tmp_path)


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "..", "", "a\0b"])
def test_no_row_leads_to_a_file_outside_the_folder(tmp_path: Path, name: str) -> None:
    picture(tmp_path / "secret.jpg")
    folder = tmp_path / "fakeddit"
    picture(folder / "images" / "a1.jpg")
    folders = image_folders(folder)
    assert image_beside(folders, name) == ()
    assert image_beside(folders, "a1") == (folder / "images" / "a1.jpg",)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "bingo"
    folder.mkdir()
    (folder / "a1.jpg").symlink_to(picture(tmp_path / "secret.jpg"))
    assert image_beside(image_folders(folder), "a1") == ()


QUESTION = {
    "category": "VS",
    "subcategory": "chart",
    "visual_input": "0",
    "set_id": "3",
    "figure_id": "0",
    "question_id": "0",
    "question": "Is the tower higher than the mill?",
    "gt_answer_details": "The tower is higher.",
    "gt_answer": "1",
    "filename": None,
}
DRAWN = {
    **QUESTION,
    "visual_input": "1",
    "figure_id": "1",
    "gt_answer": "0",
    "filename": "./c/3.png",
}


def test_questions_without_image_are_answered_yes_and_no(tmp_path: Path) -> None:
    write_list(tmp_path / "HallusionBench.json.gz", [QUESTION, DRAWN])
    picture(tmp_path / "c" / "3.png")
    rows = load(load_hallusionbench, tmp_path, "text")
    assert [(row.response, row.label) for row in rows] == [
        ("Yes", "supported"),
        ("No", "hallucinated"),
    ]
    every = load(load_hallusionbench, tmp_path, "all")
    assert [row.label for row in every[2:]] == ["hallucinated", "supported"]
    assert every[2].images == (tmp_path / "c" / "3.png",)
    assert every[0].group == every[2].group
    assert all(row.documents == () for row in every)


def test_a_recorded_answer_that_differs_is_hallucinated(tmp_path: Path) -> None:
    write_list(tmp_path / "HallusionBench.json.gz", [QUESTION, DRAWN])
    said = [
        {**QUESTION, "model_prediction": "No, the mill is."},
        {**DRAWN, "model_prediction": "No."},
        {**DRAWN, "model_prediction": "Both are high."},
        {**DRAWN, "set_id": "9", "model_prediction": "Yes."},
    ]
    write_list(tmp_path / "HallusionBench_result_sample.json", said)
    rows = load(load_hallusionbench_recorded, tmp_path, "recorded")
    assert [(row.response, row.label) for row in rows] == [
        ("No, the mill is.", "hallucinated"),
        ("No.", "supported"),
    ]


def test_a_question_on_an_image_has_no_label(tmp_path: Path) -> None:
    row = {"question": "Which word is it?", "ground truth": "Fyr.", "image": "images/OCR/1.png"}
    without = {"question": "Which word is it?", "image": "images/OCR/2.png"}
    write_lines(tmp_path / "annotation.subset.jsonl", [row, without])
    picture(tmp_path / "images" / "OCR" / "1.png")
    [found] = load(load_bingo, tmp_path)
    assert (found.label, found.response) == (None, "Fyr.")
    assert found.images == (tmp_path / "images" / "OCR" / "1.png",)
