"""Prices and windows come from the list that litellm brings, read without loading litellm."""

from __future__ import annotations

import subprocess
import sys

import pytest

from core.llm.call import known_providers, provider_of, shown_address, wire_name
from core.llm.limits import Price, price_of, window_of
from core.llm.providers import _litellm
from core.schema.rosters import DEFAULT_WINDOW, Seat

HOME = "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("openai/gpt-4o-mini", Price(1.5e-7, 6e-7)),
        ("gpt-4o-mini", Price(1.5e-7, 6e-7)),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", Price(3e-6, 1.5e-5)),
        ("bedrock/converse/anthropic.claude-3-5-sonnet-20240620-v1:0", Price(3e-6, 1.5e-5)),
        ("bedrock/mistral.mistral-7b-instruct-v0:2", Price(1.5e-7, 2e-7)),
        ("bedrock/amazon.titan-embed-text-v2:0", Price(2e-8, 0.0)),
        ("openai/no-such-model", None),
        ("no-such-model", None),
        ("ollama_chat/llama3.1", None),
        ("cloudflare/@cf/mistral/mistral-7b-instruct-v0.2-lora", None),
        ("groq/gpt-4o-mini", None),
    ],
)
def test_the_list_knows_a_price_or_it_is_unknown_never_nothing(
    model: str, price: Price | None
) -> None:
    found = price_of(Seat(model=model))
    if price is None:
        assert found is None
    else:
        assert found is not None
        assert found.per_token_in == pytest.approx(price.per_token_in)
        assert found.per_token_out == pytest.approx(price.per_token_out)


def test_another_server_has_another_price() -> None:
    assert price_of(Seat(model="openai/gpt-4o-mini", api_base=HOME)) is None
    assert window_of(Seat(model="openai/gpt-4o-mini", api_base=HOME)) == DEFAULT_WINDOW


def test_a_price_of_the_seat_counts_and_so_does_nothing_at_all() -> None:
    assert price_of(Seat(model="x", api_base=HOME, price_in=2.0, price_out=8.0)) == Price(
        2e-6, 8e-6
    )
    assert price_of(Seat(model="x", api_base=HOME, price_in=0.0, price_out=0.0)) == Price(0.0, 0.0)
    assert price_of(Seat(model="x", api_base=HOME, price_in=2.0)) is None
    half = price_of(Seat(model="gpt-4o-mini", price_in=2.0))
    assert half is not None
    assert (half.per_token_in, half.per_token_out) == pytest.approx((2e-6, 6e-7))
    assert Price(2e-6, 8e-6).of(1000, 100) == pytest.approx(0.0028)


def test_windows_are_the_seats_or_the_lists_or_modest() -> None:
    assert window_of(Seat(model="gpt-4o-mini")) == 128_000
    assert window_of(Seat(model="bedrock/mistral.mistral-7b-instruct-v0:2")) == 32_000
    assert window_of(Seat(model="gpt-4o-mini", window=1000)) == 1000
    assert window_of(Seat(model="nobody-knows")) == DEFAULT_WINDOW


def test_names_are_read_as_litellm_reads_them() -> None:
    litellm = _litellm()
    spoken = {"openai", "anthropic", "gemini", "bedrock", "mistral", "groq", "ollama_chat", "azure"}
    assert spoken <= known_providers()
    for provider in spoken | {"hosted_vllm", "lm_studio", "openrouter", "deepseek", "xai"}:
        assert provider in litellm.provider_list
        assert provider_of(Seat(model=f"{provider}/m")) == provider
        assert wire_name(Seat(model=f"{provider}/m", api_base=HOME)) == f"{provider}/m"
    assert wire_name(Seat(model="meta-llama/L", api_base=HOME)) == "openai/meta-llama/L"
    assert wire_name(Seat(model="L", api_base=HOME)) == "openai/L"
    assert wire_name(Seat(model="L")) == "L"
    assert provider_of(Seat(model="L")) is None


def test_an_address_is_shown_without_a_password() -> None:
    seat = Seat(model="x", api_base="https://me:secret@host.example:81/v1?key=secret#secret")
    assert shown_address(seat) == "https://host.example:81/v1"
    assert shown_address(Seat(model="openai/x")) == "openai"


def test_the_list_is_read_without_loading_litellm() -> None:
    code = (
        "import sys; from core.llm.limits import price_of; from core.schema.rosters import Seat; "
        "assert price_of(Seat(model='gpt-4o-mini')); "
        "import core.llm.client, core.llm.encoder; "
        "assert not {'litellm', 'openai'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
