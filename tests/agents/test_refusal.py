"""Refusals that pose as answers are told from answers that say what they cannot tell."""

from __future__ import annotations

import pytest

from core.agents.reply_parser import is_refusal


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, I cannot assist with this request.",
        "Sorry, I can't describe this image.",
        "I cannot help with that.",
        "I can't assist with identifying people in images.",
        "I am unable to process images.",
        "I'm not able to view images.",
        "As an AI language model, I cannot see images.",
        "Unfortunately, I cannot provide a description of this content.",
        "I don't have access to the image. Please attach it.",
        "I apologize, I must decline to describe it.",
        "I'm sorry, but no image was provided.",
        "No image was attached to your message.",
        "**I'm sorry**, I won't be able to help with this.",
        "抱歉，我无法帮助您完成这个请求。",
        "对不起，我不能描述这张图片。",
        "很抱歉，无法查看图片。",
        "作为一个人工智能，我无法查看图像。",
        "我无法识别图片中的人物。",
        "没有看到任何图片。",
    ],
)
def test_declining_is_a_refusal(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The chart shows Switzerland as the largest importer, at about 12,000 million dollars.",
        "I can't identify who this is, but the photograph shows a woman with a red umbrella.",
        "The sign reads “Sorry, we are closed”.",
        "A sorry-looking dog sits in front of a door.",
        "The two lines have the same length; the image does not show any scale.",
        "I see two horizontal lines of equal length.",
        "Sorry is written on the card in blue letters.",
        "The axis cannot be read, the bars rise from left to right.",
        "抱歉二字写在门牌上，门是关着的。",
        "图片显示两条等长的水平线。",
        "我无法辨认左边的数字，但右边的柱子是412。",
        "I'm sorry, but I can't tell the names of people. "
        + "The photograph shows a street. " * 15,
    ],
)
def test_answers_are_not(text: str) -> None:
    assert not is_refusal(text)
