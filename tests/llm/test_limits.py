"""Prices, windows and estimates: what a call could cost at worst."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from core.llm.call import Picture, known_providers, provider_of, shown_address, wire_name
from core.llm.limits import (
    Price,
    count_fitting,
    estimate_tokens,
    picture_tokens,
    price_of,
    truncate_to_tokens,
    window_of,
)
from core.llm.prompting import FIELDS, LANGUAGES, NAMES, fill_prompt, load_shipped_prompt
from core.llm.providers import _litellm
from core.schema.rosters import DEFAULT_WINDOW_TOKENS, AgentConfig

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
    found = price_of(AgentConfig(model=model))
    if price is None:
        assert found is None
    else:
        assert found is not None
        assert found.per_token_in == pytest.approx(price.per_token_in)
        assert found.per_token_out == pytest.approx(price.per_token_out)


def test_another_server_has_another_price() -> None:
    assert price_of(AgentConfig(model="openai/gpt-4o-mini", api_base=HOME)) is None
    assert (
        window_of(AgentConfig(model="openai/gpt-4o-mini", api_base=HOME)) == DEFAULT_WINDOW_TOKENS
    )


def test_a_price_of_the_seat_counts_and_so_does_nothing_at_all() -> None:
    assert price_of(AgentConfig(model="x", api_base=HOME, price_in=2.0, price_out=8.0)) == Price(
        2e-6, 8e-6
    )
    assert price_of(AgentConfig(model="x", api_base=HOME, price_in=0.0, price_out=0.0)) == Price(
        0.0, 0.0
    )
    assert price_of(AgentConfig(model="x", api_base=HOME, price_in=2.0)) is None
    half = price_of(AgentConfig(model="gpt-4o-mini", price_in=2.0))
    assert half is not None
    assert (half.per_token_in, half.per_token_out) == pytest.approx((2e-6, 6e-7))
    assert Price(2e-6, 8e-6).of(1000, 100) == pytest.approx(0.0028)


def test_windows_are_the_seats_or_the_lists_or_modest() -> None:
    assert window_of(AgentConfig(model="gpt-4o-mini")) == 128_000
    assert window_of(AgentConfig(model="bedrock/mistral.mistral-7b-instruct-v0:2")) == 32_000
    assert window_of(AgentConfig(model="gpt-4o-mini", window=1000)) == 1000
    assert window_of(AgentConfig(model="nobody-knows")) == DEFAULT_WINDOW_TOKENS


def test_names_are_read_as_litellm_reads_them() -> None:
    litellm = _litellm()
    spoken = {"openai", "anthropic", "gemini", "bedrock", "mistral", "groq", "ollama_chat", "azure"}
    assert spoken <= known_providers()
    for provider in spoken | {"hosted_vllm", "lm_studio", "openrouter", "deepseek", "xai"}:
        assert provider in litellm.provider_list
        assert provider_of(AgentConfig(model=f"{provider}/m")) == provider
        assert wire_name(AgentConfig(model=f"{provider}/m", api_base=HOME)) == f"{provider}/m"
    assert wire_name(AgentConfig(model="meta-llama/L", api_base=HOME)) == "openai/meta-llama/L"
    assert wire_name(AgentConfig(model="L", api_base=HOME)) == "openai/L"
    assert wire_name(AgentConfig(model="L")) == "L"
    assert provider_of(AgentConfig(model="L")) is None


def test_an_address_is_shown_without_a_password() -> None:
    seat = AgentConfig(model="x", api_base="https://me:secret@host.example:81/v1?key=secret#secret")
    assert shown_address(seat) == "https://host.example:81/v1"
    assert shown_address(AgentConfig(model="openai/x")) == "openai"


def test_the_list_is_read_without_loading_litellm() -> None:
    code = (
        "import sys; from core.llm.limits import price_of; "
        "from core.schema.rosters import AgentConfig; "
        "assert price_of(AgentConfig(model='gpt-4o-mini')); "
        "import core.llm.client, core.llm.encoder; "
        "assert not {'litellm', 'openai'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


LEAST, MOST = 0.95, 1.6
SAMPLES = {
    "English": "The bridge over the river was opened in 1931 and has been rebuilt twice since. The "
    "court found that the company had not followed the safety instructions and must compensate "
    "the people who were hurt.",
    "Chinese": "这座大桥于1931年通车，此后曾两度改建。法院裁定该公司没有遵守安全规定，必须赔偿受"
    "害者的损失。",
    "traditional Chinese": "這座橋於1931年通車，此後曾兩度改建。法院裁定該公司沒有遵守安全指示。",
    "Arabic": "افتتح الجسر فوق النهر في عام 1931 وأعيد بناؤه مرتين منذ ذلك الحين. وقضت المحكمة بأن "
    "الشركة لم تتبع تعليمات السلامة وعليها تعويض المتضررين.",
    "Hindi": "नदी पर बना पुल 1931 में खोला गया था और तब से इसका दो बार पुनर्निर्माण किया गया है। "
    "अदालत ने पाया "
    "कि कंपनी ने सुरक्षा निर्देशों का पालन नहीं किया।",
    "Russian": "Мост через реку был открыт в 1931 году, и с тех пор его дважды перестраивали. Суд "
    "установил, что компания не выполнила требования безопасности.",
    "Japanese": "この橋は1931年に開通し、それ以来二度改修されました。裁判所は、会社が安全に関する"
    "指示に従わなかったと判断しました。",
    "Korean": "이 다리는 1931년에 개통되었으며 그 이후 두 번 보수되었습니다. 법원은 회사가 안전 "
    "지침을 따르지 않았다고 판결했습니다.",
    "German": "Die Brücke über den Fluss wurde 1931 eröffnet und seither zweimal umgebaut. Das "
    "Gericht "
    "stellte fest, dass die Firma die Sicherheitsanweisungen missachtet hatte.",
    "French": "Le pont sur le fleuve a été ouvert en 1931 et reconstruit deux fois depuis. Le "
    "tribunal "
    "a jugé que l'entreprise n'avait pas suivi les consignes de sécurité.",
    "Czech": "Most přes řeku byl otevřen v roce 1931 a od té doby byl dvakrát přestavěn. Soud "
    "shledal, "
    "že společnost nedodržela bezpečnostní pokyny.",
    "Thai": "สะพานเปิดใช้งานในปี ค.ศ. 1931 และได้รับการบูรณะสองครั้งตั้งแต่นั้นมา",
    "Tamil": "இந்த பாலம் 1931 ஆம் ஆண்டு திறக்கப்பட்டது, அதன் பிறகு இரண்டு முறை புதுப்பிக்கப்பட்டது.",
    "Armenian": "Կամուրջը բացվել է 1931 թվականին և այդ ժամանակից ի վեր երկու անգամ վերակառուցվել "
    "է։",
    "code": "def retrieve(case: Case, k: int = 5) -> tuple[Passage, ...]:\n"
    '    """Best first."""\n    scores = {p.id: cosine(p.vector, case.vector) for p in index}\n'
    "    return tuple(sorted(scores, key=scores.get)[:k])\n",
    "numbers": "1931 45.6 78,900 12/05/2021 3.14159 1,234,567.89 0.001 -7 42% 2021-05-12T10:00:00Z",
    "a table": "| 12 | 3.4 | 56 |\n| 7.8 | 910 | 1112 |\n| 0.1 | 0.22 | 0.333 |\n" * 5,
    "emoji": "😀😂🥲🎉👍🏽👩‍🔬🏳️‍🌈🔥✨❤️🇫🇷🚀🧪",
    "emoji among words": "Great news! 🎉 The bridge is open 🚗💨 and everybody 🎊 is happy "
    "😀😀😀 👍🏽",
    "hexadecimal": "3f9a0c77be1248d5a9e6f00412cd98ab77e1 550e8400-e29b-41d4-a716-446655440000",
    "base64": "SGVsbG8gd29ybGQhIFRoaXMgaXMgYSB0ZXN0IG9mIGJhc2U2NCBlbmNvZGluZyBpbiB0ZXh0cw==",
    "formula": r"\frac{\partial f}{\partial x} = \sum_{i=1}^{n} \alpha_i x_i^{2} \leq "
    r"\int_0^\infty",
    "JSON": '{"spans": [{"reason": "not there", "quote": "1941", "instead": "1931", "p": 0.9}]}',
    "punctuation": "!!!??? ... --- *** === ,,,; ;; :) :-( [][] {}{} <<>> ~~~ ``` '''",
    "rare characters": "龘靐齉爩鱻麤龗灪吁黿鼉鼇羴犇骉",
}


@pytest.fixture(scope="module")
def cl100k() -> Iterator[tiktoken.Encoding]:
    """OpenAI's tokenizer from litellm's own files; the network is not asked."""
    spec = find_spec("litellm")
    assert spec
    assert spec.origin
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        yield tiktoken.get_encoding("cl100k_base")


@pytest.mark.parametrize("kind", SAMPLES)
def test_the_estimate_lies_between_the_truth_and_three_fifths_more(
    kind: str, cl100k: tiktoken.Encoding
) -> None:
    text = SAMPLES[kind]
    share = estimate_tokens(text) / len(cl100k.encode(text))
    assert LEAST <= share <= MOST, f"{share:.2f}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_our_own_prompts_are_estimated_well(
    name: str, language: str, cl100k: tiktoken.Encoding
) -> None:
    fields = dict.fromkeys(FIELDS[name], SAMPLES["English"])
    text = "\n".join(
        message.text for message in fill_prompt(load_shipped_prompt(name, language), fields)
    )
    assert LEAST <= estimate_tokens(text) / len(cl100k.encode(text)) <= MOST


@given(st.text(), st.text())
def test_more_text_never_has_fewer_tokens(one: str, other: str) -> None:
    assert estimate_tokens(f"{one}\n{other}") >= estimate_tokens(one)


@given(st.text(min_size=1))
def test_any_text_has_tokens_unless_it_is_one_blank(text: str) -> None:
    assert estimate_tokens(text) >= (0 if text.isspace() else 1)


def test_no_text_has_no_tokens() -> None:
    assert estimate_tokens("") == 0
    assert count_fitting([], 100) == 0


def test_the_leading_parts_that_fit_are_counted() -> None:
    parts = [SAMPLES["English"]] * 4
    one = estimate_tokens(parts[0]) + 1
    assert count_fitting(parts, 4 * one) == 4
    assert count_fitting(parts, 4 * one - 1) == 3
    assert count_fitting(parts, one) == 1
    assert count_fitting(parts, one - 1) == 0
    assert count_fitting(parts, -5) == 0


@given(st.lists(st.text()), st.integers(-10, 400))
def test_what_fits_really_fits(parts: list[str], room: int) -> None:
    number = count_fitting(parts, room)
    assert number == 0 or estimate_tokens("\n".join(parts[:number])) <= room
    assert number <= len(parts)


def picture(width: int, height: int, form: str = "PNG") -> Picture:
    buffer = BytesIO()
    Image.new("RGB", (width, height)).save(buffer, form)
    return Picture(f"image/{form.lower()}", buffer.getvalue())


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(64, 64, 255), (1024, 1024, 1399), (1568, 1568, 3279), (2048, 512, 1399)],
)
def test_a_picture_takes_what_the_dearer_of_two_providers_counts(
    width: int, height: int, tokens: int
) -> None:
    assert picture_tokens(picture(width, height)) == tokens
    assert picture_tokens(picture(width, height, "JPEG")) == tokens


def test_a_picture_of_unknown_size_counts_as_the_largest_that_is_sent() -> None:
    for data in (b"", b"not a picture", b"\x89PNG\r\n\x1a\n" + b"\x00" * 20):
        assert picture_tokens(Picture("image/png", data)) == 3279


@given(st.text(max_size=300), st.integers(-2, 40))
def test_a_beginning_is_all_that_fits_or_all(text: str, room: int) -> None:
    kept = truncate_to_tokens(text, room)
    assert text.startswith(kept)
    assert estimate_tokens(kept) <= max(0, room) or not kept
    assert kept == text or estimate_tokens(text) > room
