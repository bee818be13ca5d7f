"""Providers' errors as they are read: waits, words, and what their raw streams say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from core.llm.failures import FaultReader, retry_after
from core.llm.keys import Keys
from core.schema.rosters import AgentConfig


class Failed(Exception):
    """As litellm raises them: a status, and the headers of the answer."""

    def __init__(self, text: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.litellm_response_headers = headers


@pytest.mark.parametrize(
    ("said", "seconds"), [("3", 3.0), ("0.5", 0.5), ("-4", 0.0), ("", None), ("soon", None)]
)
def test_a_wait_is_read_in_seconds(said: str, seconds: float | None) -> None:
    assert retry_after(Failed("x", {"retry-after": said})) == seconds
    assert retry_after(Failed("x")) is None


def test_a_wait_is_read_as_a_date() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    found = retry_after(Failed("x", {"retry-after": soon}))
    assert found is not None
    assert 17 < found <= 20
    for senseless in (
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "1 Jan 2030 0:0 +9999999999999",
    ):
        assert retry_after(Failed("x", {"retry-after": senseless})) is None
    past = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    assert retry_after(Failed("x", {"retry-after": past})) == 0.0


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("litellm.RateLimitError: RateLimitError: OpenAIException - slow down.", "“slow down”"),
        (
            'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"x",'
            '"message":"credit balance is too low"}}',
            "“credit balance is too low”",
        ),
        ('litellm.APIError: APIError: {"error": "model is loading"}', "“model is loading”"),
        ("litellm.APIError: APIError: {not json", "“{not json”"),
        ("litellm.Timeout: APITimeoutError - Request timed out.", "“Request timed out”"),
        ("Checksum mismatch Traceback (most recent call last): File x", "“Checksum mismatch”"),
        ("", "no words"),
    ],
)
def test_a_providers_words_are_taken_out_of_their_wrapping(text: str, quoted: str) -> None:
    faults = FaultReader(AgentConfig(model="openai/x"), Keys({}), lambda text: text)
    assert faults.quoted(Failed(text)) == quoted


def test_a_key_is_gone_before_the_words_are_cut() -> None:
    key = "sk-very-long-key-of-somebody"
    faults = FaultReader(
        AgentConfig(model="openai/x"), Keys({}), Keys({"ANY_API_KEY": key}).scrubbed
    )
    for lead in range(200, 245):
        assert "sk-very" not in faults.quoted(Failed("x" * lead + key))
