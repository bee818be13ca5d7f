"""Keys: where they are taken from, whom they may be sent to, and that nobody sees them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.llm.keys import ADDRESS_KEY, NO_KEY, Keys, key_names, load_keys
from core.runtime.errors import ConfigError, KeyMissing
from core.schema.rosters import AgentConfig

KEY = "sk-abcdef-0123456789"
AT_HOME = "http://127.0.0.1:11434/v1"
AMAZON = {
    "AWS_ACCESS_KEY_ID": "AKIA-000000",
    "AWS_SECRET_ACCESS_KEY": "secret-00000",
    "AWS_REGION": "eu-west-1",
}


def test_what_is_typed_goes_before_secrets_before_environment() -> None:
    keys = Keys({"A": "env", "B": "env", "C": "env"}, {"A": "sec", "B": "sec"}, {"A": "typ"})
    assert [keys.get(name) for name in "ABCD"] == ["typ", "sec", "env", None]
    assert [keys.where(name) for name in "ABCD"] == ["typed", "secrets", "environment", None]


def test_an_empty_key_is_none_and_a_table_in_the_secrets_is_no_key() -> None:
    keys = Keys({"A": "env"}, {"A": "  ", "T": {"x": 1}}, {"A": ""})  # type: ignore[dict-item]
    assert (keys.get("A"), keys.where("A")) == ("env", "environment")
    assert keys.get("T") is None
    assert Keys({"A": f" {KEY}\n"}).get("A") == KEY


def test_nobody_sees_the_keys() -> None:
    keys = Keys({"OPENAI_API_KEY": KEY}, {"X": KEY}, {"Y": KEY})
    assert KEY not in f"{keys!r} {keys!s}"


def test_a_text_is_scrubbed_of_every_key_but_not_of_ordinary_words() -> None:
    keys = Keys(
        {"OPENAI_API_KEY": KEY, "HOME": "/home/somebody", "MY_TOKEN": "abc"},
        {"anything": "hunter2-hunter2"},
        {"K": f"{KEY}-and-more"},
    )
    text = f"{KEY} {KEY}-and-more hunter2-hunter2 /home/somebody abc"
    assert keys.scrubbed(text) == "… … … /home/somebody abc"


@pytest.mark.parametrize(
    ("seat", "names"),
    [
        (AgentConfig(), ()),
        (AgentConfig(model="openai/gpt-4o"), ("OPENAI_API_KEY",)),
        (AgentConfig(model="gpt-4o"), ("OPENAI_API_KEY",)),
        (AgentConfig(model="anthropic/claude-3-5-haiku-latest"), ("ANTHROPIC_API_KEY",)),
        (AgentConfig(model="gemini/gemini-2.0-flash"), ("GEMINI_API_KEY",)),
        (AgentConfig(model="together_ai/meta/llama"), ("TOGETHERAI_API_KEY",)),
        (AgentConfig(model="groq/llama"), ("GROQ_API_KEY",)),
        (AgentConfig(model="openai/gpt-4o", key_name="TEAM_API_KEY"), ("TEAM_API_KEY",)),
        (AgentConfig(model="ollama_chat/llama3.2"), ()),
        (AgentConfig(model="openai/x", api_base=AT_HOME), ()),
        (AgentConfig(model="x", api_base=AT_HOME, key_name="HOUSE_API_KEY"), ("HOUSE_API_KEY",)),
        (
            AgentConfig(model="openai/x", api_base="https://eu.api.openai.com/v1"),
            ("OPENAI_API_KEY",),
        ),
        (AgentConfig(model="azure/x", api_base="https://us.openai.azure.com"), ("AZURE_API_KEY",)),
        (
            AgentConfig(model="bedrock/amazon.titan-embed-text-v2:0"),
            ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION_NAME"),
        ),
    ],
)
def test_a_seat_names_the_keys_it_needs(seat: AgentConfig, names: tuple[str, ...]) -> None:
    assert key_names(seat) == names
    assert Keys({}).missing_for(seat) == names
    assert Keys(dict.fromkeys(names, KEY)).missing_for(seat) == ()


def test_a_missing_key_is_said_with_its_name() -> None:
    with pytest.raises(KeyMissing, match="OPENAI_API_KEY") as caught:
        Keys({}).credentials(AgentConfig(model="openai/gpt-4o"))
    assert caught.value.names == ("OPENAI_API_KEY",)


def test_other_names_for_the_same_key_count() -> None:
    seat = AgentConfig(model="gemini/gemini-2.0-flash")
    assert Keys({"GOOGLE_API_KEY": KEY}).credentials(seat) == {"api_key": KEY}


def test_amazon_gets_its_set_of_names() -> None:
    seat = AgentConfig(model="bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0")
    assert Keys(AMAZON).credentials(seat) == {
        "aws_access_key_id": "AKIA-000000",
        "aws_secret_access_key": "secret-00000",
        "aws_region_name": "eu-west-1",
    }
    bearer = {"AWS_BEARER_TOKEN_BEDROCK": KEY, "AWS_REGION": "eu-west-1"}
    sent = Keys(bearer).credentials(seat)
    assert sent == {"api_key": KEY, "aws_region_name": "eu-west-1"}
    assert Keys({"AWS_ACCESS_KEY_ID": "AKIA-000000"}).missing_for(seat) == (
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION_NAME",
    )


def test_an_address_gets_its_own_key_or_none() -> None:
    keys = Keys({"OPENAI_API_KEY": KEY, **AMAZON})
    for model in ("x", "openai/x", "anthropic/x", "ollama_chat/x", "meta-llama/Llama-3-8B"):
        assert keys.credentials(AgentConfig(model=model, api_base=AT_HOME)) == {"api_key": NO_KEY}
    house = Keys({"OPENAI_API_KEY": KEY, ADDRESS_KEY: "house-key-1", "LAB_API_KEY": "lab-key-1"})
    assert house.credentials(AgentConfig(model="x", api_base=AT_HOME)) == {"api_key": "house-key-1"}
    lab = AgentConfig(model="x", api_base=AT_HOME, key_name="LAB_API_KEY")
    assert house.credentials(lab) == {"api_key": "lab-key-1"}
    sent = keys.credentials(AgentConfig(model="bedrock/x", api_base=AT_HOME))
    assert not set(sent.values()) & set(AMAZON.values()) - {"eu-west-1"}


SECRET = "the-secret-itself"
STEALING = Keys(
    dict.fromkeys(
        "OPENAI_API_KEY AWS_SECRET_ACCESS_KEY GITHUB_TOKEN DB_PASSWORD GOOGLE_API_KEY".split(),
        SECRET,
    )
)


@pytest.mark.parametrize(
    "seat",
    [
        AgentConfig(model="x", api_base=AT_HOME, key_name="OPENAI_API_KEY"),
        AgentConfig(
            model="openai/x", api_base="https://evil.example/v1", key_name="OPENAI_API_KEY"
        ),
        AgentConfig(model="groq/x", key_name="OPENAI_API_KEY"),
        AgentConfig(model="x", api_base=AT_HOME, key_name="AWS_SECRET_ACCESS_KEY"),
        AgentConfig(model="x", api_base=AT_HOME, key_name="GITHUB_TOKEN"),
        AgentConfig(model="x", api_base=AT_HOME, key_name="DB_PASSWORD"),
        AgentConfig(model="x", api_base=AT_HOME, key_name="GOOGLE_API_KEY"),
    ],
)
def test_a_roster_cannot_send_a_secret_to_whom_it_does_not_belong(seat: AgentConfig) -> None:
    with pytest.raises(ConfigError, match=seat.key_name) as caught:
        STEALING.credentials(seat)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "https://evil-api.openai.com.example/v1",
        "https://evilapi.openai.com/v1",
        "https://api.openai.com@evil.example/v1",
        "https://evil.example\\@api.openai.com/v1",
        "https://evil.example#.api.openai.com",
        "https://evil.example?.api.openai.com",
        "http://api.openai.com/v1",
    ],
)
def test_an_address_that_looks_like_the_providers_gets_no_key(address: str) -> None:
    assert STEALING.credentials(AgentConfig(model="openai/x", api_base=address)) == {
        "api_key": NO_KEY
    }


def test_a_key_that_cannot_travel_is_said_without_being_shown() -> None:
    for bad in (f"{KEY}\nX: y", f"{KEY}–dash", "two words"):
        with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
            Keys({"OPENAI_API_KEY": bad}).credentials(AgentConfig(model="openai/x"))
        assert bad not in str(caught.value)
        assert KEY not in str(caught.value)


@pytest.mark.parametrize("model", ["openai/x", "anthropic/x", "bedrock/x"])
def test_no_letter_that_no_key_has_travels_to_an_address(model: str) -> None:
    for key in ("sk-one\r\nX-Evil: 1", "sk one two three", "sk-é-two-three"):
        with pytest.raises(ConfigError, match="holds a space, a line break"):
            Keys({"COUNTERPOINT_API_KEY": key}).credentials(
                AgentConfig(model=model, api_base=AT_HOME)
            )


@pytest.mark.parametrize("model", ["github_copilot/gpt-4o", "chatgpt/gpt-5"])
def test_nobody_is_signed_in_behind_their_back(model: str) -> None:
    with pytest.raises(ConfigError, match="would sign in to"):
        Keys({}).credentials(AgentConfig(model))


def written(root: Path, text: str | bytes) -> Path:
    folder = root / ".streamlit"
    folder.mkdir()
    (folder / "secrets.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def test_flat_names_and_the_table_of_keys(tmp_path: Path) -> None:
    before = dict(os.environ)
    root = written(tmp_path, 'A_KEY = "flat-1"\nB_KEY = 5\n[keys]\nC_KEY = "table-1"\n[other]\nx=1')
    keys = load_keys({"A_KEY": "environment-1", "D_KEY": "environment-2"}, root)
    assert [keys.get(name) for name in ("A_KEY", "B_KEY", "C_KEY", "D_KEY", "keys")] == [
        "flat-1", None, "table-1", "environment-2", None,
    ]  # fmt: skip
    assert (keys.where("A_KEY"), keys.where("D_KEY")) == ("secrets", "environment")
    assert dict(os.environ) == before


def test_no_file_is_no_fault(tmp_path: Path) -> None:
    assert load_keys({}, tmp_path).get("A_KEY") is None
    (tmp_path / ".streamlit").write_text("a file where a folder could be")
    assert load_keys({}, tmp_path).get("A_KEY") is None


@pytest.mark.parametrize(
    "text",
    ['A_KEY = "sk-secret-value', "A_KEY = sk-secret-value", b"A_KEY = '\xff sk-secret-value'"],
)
def test_a_broken_file_is_one_clear_sentence_without_its_content(
    tmp_path: Path, text: str | bytes
) -> None:
    with pytest.raises(ConfigError) as raised:
        load_keys({}, written(tmp_path, text))
    message = str(raised.value)
    assert "Expected TOML in .streamlit/secrets.toml" in message
    assert "\n" not in message
    assert "secret-value" not in message
    assert raised.value.__cause__ is None


def test_the_place_of_the_fault_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 2"):
        load_keys({}, written(tmp_path, 'A = "x"\nB = \n'))


def test_a_folder_or_a_flood_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / ".streamlit" / "secrets.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="Expected to read keys from"):
        load_keys({}, tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ConfigError, match="found a large one"):
        load_keys({}, written(other, "#" * 1_000_001))
