"""A question to a language model and its answer as plain values, and replies of a certain form.

Names are read as litellm does, without it. A reply is read by its schema, then repaired, then asked
for once more with what was wrong; then `ReplyError` carries it. Nothing in it is ever executed.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

import json_repair
import msgspec

from core.runtime.concurrency import StopSignal
from core.runtime.errors import ReplyError
from core.schema.records import ModelCall
from core.schema.rosters import AgentConfig

PRICE_LIST = "model_prices_and_context_window_backup.json"
PROVIDER_LIST = "provider_endpoints_support_backup.json"
# They run where their user does: no key, and a price that a list cannot know.
LOCAL = frozenset(
    "local ollama ollama_chat lm_studio hosted_vllm vllm llamafile xinference docker_model_runner "
    "lemonade oobabooga petals".split()
)
AMAZON = frozenset({"bedrock", "bedrock_mantle", "sagemaker", "sagemaker_chat"})
OPENAI_COMPATIBLE = "openai"
# Addresses that belong to a provider although an agent names them itself.
OWN_HOSTS: dict[str, tuple[str, ...]] = {
    "openai": (".api.openai.com",),
    "anthropic": (".api.anthropic.com",),
    "mistral": (".api.mistral.ai",),
    "azure": (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
    "azure_ai": (".services.ai.azure.com", ".models.ai.azure.com"),
}
PRIVATE_DOMAINS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
_PLAIN_ADDRESS = re.compile(r"https://([a-z0-9.-]+)(?::443)?(?:/[\w./-]*)?", re.IGNORECASE)
_ALIASES = {"bedrock_converse": "bedrock", "text-completion-openai": "openai"}


@lru_cache(maxsize=2)
def load_bundled_list(name: str) -> dict[str, Any]:
    """Return a list that ships with litellm, read as plain JSON; empty without litellm."""
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return {}
    path = Path(next(iter(spec.submodule_search_locations))) / name
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


@lru_cache(maxsize=1)
def known_providers() -> frozenset[str]:
    """Return the providers' names, which may precede the first slash of a model's name."""
    priced = (
        str(entry.get("litellm_provider", "")) for entry in load_bundled_list(PRICE_LIST).values()
    )
    plain = {word for word in priced if re.fullmatch(r"[\w-]+", word)}
    return frozenset(plain | set(load_bundled_list(PROVIDER_LIST).get("providers", {})) | LOCAL)


def provider_of(agent: AgentConfig) -> str | None:
    """Return the provider of the agent's model, or None where the name does not tell.

    A name without a known provider, at an address of its own, is an OpenAI-compatible server's.
    """
    first, slash, _ = agent.model.partition("/")
    if slash and first in known_providers():
        return first
    if agent.api_base:
        return OPENAI_COMPATIBLE
    listed = str(load_bundled_list(PRICE_LIST).get(agent.model, {}).get("litellm_provider", ""))
    return (_ALIASES.get(listed) or listed.split("-")[0]) or None


def wire_name(agent: AgentConfig) -> str:
    """Return the model's name as litellm takes it: `provider/model`.

    Servers name models after their authors (`meta-llama/Llama-3-8B`), so a first word counts as a
    provider only when litellm knows it.
    """
    first, slash, _ = agent.model.partition("/")
    if not agent.api_base or (slash and first in known_providers()):
        return agent.model
    return f"{OPENAI_COMPATIBLE}/{agent.model}"


def is_elsewhere(agent: AgentConfig) -> bool:
    """Return True if the address is not the provider's own, so no provider's key may go there."""
    if not agent.api_base:
        return False
    # Nothing but a plain address is read: a host that two parsers read differently is nobody's.
    plain = _PLAIN_ADDRESS.fullmatch(agent.api_base)
    own = OWN_HOSTS.get(provider_of(agent) or "", ())
    return plain is None or not f".{plain.group(1).lower()}".endswith(own)


def is_on_own_server(agent: AgentConfig) -> bool:
    """Return True for a server that people run themselves, or at an address that they gave."""
    return is_elsewhere(agent) or provider_of(agent) in LOCAL


def decodes_by_grammar(agent: AgentConfig) -> bool:
    """Return True for a server on this computer or a private network, or so named by its provider.

    A hosted service at another address may refuse schemas with hundreds of choices: it gets what
    providers get, unless the model's name says that one's own server serves it (`hosted_vllm/…`).
    """
    return provider_of(agent) in LOCAL or is_private_address(agent.api_base)


def is_private_address(address: str) -> bool:
    """Return True if the address's host is this computer or within a private network."""
    try:
        host = (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(PRIVATE_DOMAINS))
    return found.is_private or found.is_loopback or found.is_link_local


def shown_address(agent: AgentConfig) -> str:
    """Return the agent's address for display, without a name or password in it."""
    if not agent.api_base:
        provider = provider_of(agent)
        return "this computer" if provider == "local" else provider or "its provider"
    parts = urlsplit(agent.api_base)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


Speak = Callable[[str], None]


@dataclass(frozen=True)
class Picture:
    """An image that goes with a message: its media type and the encoded bytes."""

    media_type: str
    data: bytes


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Call:
    """A request: the model with its settings, the messages, and the form of the reply.

    `schema` is the JSON schema of the reply, None for plain text. `fence` is the random delimiter
    inside the messages; it differs from run to run and is left out of the digest.
    """

    agent: AgentConfig
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    fence: str = ""

    @property
    def digest(self) -> str:
        """Digest of everything that decides the answer; equal calls have equal digests."""
        agent = self.agent
        body = [agent.model, agent.api_base, agent.temperature, agent.max_tokens, self.schema]
        for message in self.messages:
            text = message.text.replace(self.fence, "FENCE") if self.fence else message.text
            pictures = [hashlib.sha256(p.data).hexdigest() for p in message.pictures]
            body.append([message.role, text, pictures])
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Completion:
    """A whole answer. `finish` is `length` when the token limit cut it.

    `is_counted` says that the provider counted the tokens; else they are our estimate. `cost` is in
    US dollars, None where the price is not known. `seconds` is the call's own time.
    """

    text: str
    finish: Literal["stop", "length"]
    tokens_in: int
    tokens_out: int
    is_counted: bool
    cost: float | None
    seconds: float


@dataclass(frozen=True)
class ModelRequest:
    """A call with what ledger and trace record about it.

    `role` is the roster's name for the role, `slot` tells the calls of one run apart (“turn 3”,
    “image 5f2c prompt”); n samples of one prompt are n slots. `prompt` and `prompt_hash` name the
    prompt file and its text; `cut` says in words what did not fit the model's window.
    """

    role: str
    slot: str
    call: Call
    prompt: str = ""
    prompt_hash: str = ""
    cut: str = ""


@dataclass(frozen=True, eq=False)
class CallUnderWay:
    """A call that a model is answering: what was asked, and the reply's pieces so far.

    It is for the screen alone. `prompt_tokens` is our estimate; `began_at` is a monotonic time.
    """

    asked: ModelRequest
    prompt_tokens: int
    began_at: float
    pieces: list[str] = field(default_factory=list)


class Model(Protocol):
    """Anything that answers calls."""

    def complete(self, call: Call, speak: Speak, stop: StopSignal) -> Completion:
        """Return the whole answer; call `speak` with its pieces as they arrive.

        Raises:
            ModelError: the service failed, after retries (ModelTimeout when it was silent).
            ModelRefused: the model or a filter declined.
            ReplyError: the answer is empty, or longer than any.
            ConfigError: the key is wrong or missing, or the model is unknown.
            Stopped: `stop` was set; the connection is closed by then.
        """
        ...


class RunClient(Protocol):
    """Makes the calls of one run's agents."""

    def ask(self, asked: ModelRequest, stop: StopSignal, speak: Speak = ...) -> Completion:
        """Return the answer from the ledger, or from the model within the caps.

        Raises:
            BudgetReached: a cap leaves no room; nothing was sent.
            ReviewError: whatever `Model.complete` raises.
        """
        ...

    def drain(self) -> tuple[ModelCall, ...]:
        """Return the calls made since the last drain."""
        ...


def ignore_piece(piece: str) -> None:
    """Ignore a piece of a reply."""


Kind = TypeVar("Kind")
MAX_REPLY_CHARS = 200_000
MAX_REPAIRED_CHARS = 20_000  # repair takes time that grows with the square of the length
# What repair reads of deeper ones takes minutes, and what reads them later may break off.
MAX_REPLY_DEPTH = 100
# Possessive: a fence that never ends is gone over once.
FENCED = re.compile(r"```[a-zA-Z]*+\s*+(.*?)```", re.DOTALL)
FURTHER_OBJECT = re.compile(r'\{\s*"')
WHOLLY_FENCED = re.compile(r"\s*```[a-zA-Z]*+[ \t]*+\n(.*?)\n?```\s*", re.DOTALL)
# Some models think aloud before they answer, and some servers leave out the opening tag.
THOUGHT = re.compile(
    r"\A(?:(?:\s*<(think|thinking|thought|reasoning)>.*?</\1>)+"
    r"|(?:(?!<<<|```|\{).)*?^[ \t]*</think>[ \t]*$)\s*",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
UNFINISHED_THOUGHT = re.compile(r"\s*<(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
# A whole first line, but for one that states a position.
COURTESY = re.compile(
    r"\A\s*(?![^\n]*\b(?-i:AGREE|DENY|CORRECT|INCORRECT|WRONG|OPEN)\b)"
    r"(?:(?:(?:sure|certainly|of course|okay)\b[^\n:]{0,40}?)?"
    r"(?:here(?: is|['’]s| are)|below is)\b[^\n]{0,100}[:：]"
    r"|(?:sure|certainly|of course|okay)[.,!]?"
    r"|[^\n]{0,8}以下[^\n]{0,60}[:：]|(?:当然|好的)[^\n]{0,8}[:：!！。])[ \t]*\n\s*",
    re.IGNORECASE,
)
MARK = re.compile(r"\\.|[\"{}\[\]]", re.DOTALL)
MAX_ITEMS = 8  # of a list in a reply, and characters of a text, where a grammar bounds them
MAX_TEXT_CHARS = 240
# What only some providers allow in a schema; our own decoder checks it anyway.
BOUNDS = frozenset({"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"})
PROBABILITIES = [number / 100 for number in range(101)]


class UnusableReply(ValueError):
    """Raised for a reply that cannot be read; the message tells the model what to mend."""


class AskModel(Protocol):
    """Sends a conversation to the model; `again` marks the retry."""

    def __call__(self, messages: tuple[Message, ...], *, again: bool) -> Completion:
        """The model's reply."""
        ...


class ReplySchema(Generic[Kind]):
    """The form of a reply: its JSON schema and its decoder.

    Make schemas at import: msgspec's first look at a type is not safe in two threads at once.
    """

    def __init__(self, kind: type[Kind]) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        whole = msgspec.json.schema(kind)
        rest = dict(whole.get("$defs", {}))
        root = rest.pop(kind.__name__)
        self.json_schema: Mapping[str, Any] = close_schema(
            {**root, "$defs": rest} if rest else root
        )
        self._names = [
            name for part in (root, *rest.values()) for name in part.get("properties", ())
        ]

    def read(self, completion: Completion) -> Kind:
        """Return the reply as a value.

        Raises UnusableReply: it holds no JSON object, or one of another form.
        """
        text = completion.text.strip()[:MAX_REPLY_CHARS]
        if _measure_depth(text) > MAX_REPLY_DEPTH and _measure_strict_depth(text) > MAX_REPLY_DEPTH:
            raise UnusableReply(
                "Expected a JSON object of the form asked for, found one nested more than "
                f"{MAX_REPLY_DEPTH} deep."
            )
        try:
            return self._decoder.decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass
        try:
            return self._decoder.decode(msgspec.json.encode(find_object(text, self._names)))
        except msgspec.ValidationError as error:
            raise UnusableReply(f"The JSON object has not the form asked for: {error}.") from error
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise UnusableReply(
                "Expected one JSON object and nothing else; found none, or several."
            ) from error


def ask_structured(
    ask: AskModel,
    messages: tuple[Message, ...],
    schema: ReplySchema[Kind],
    mend: Callable[[str], Message],
    check: Callable[[Kind], None] = lambda _value: None,
) -> Kind:
    """Return the reply in that form; `check` raises `UnusableReply` for what a schema cannot say.

    Raises ReplyError: two replies could not be read; the second one's raw text goes along.
    """

    def read(completion: Completion) -> Kind:
        value = schema.read(completion)
        check(value)
        return value

    return ask_readable(ask, messages, read, mend)


def ask_readable(
    ask: AskModel,
    messages: tuple[Message, ...],
    read: Callable[[Completion], Kind],
    mend: Callable[[str], Message],
) -> Kind:
    """Return what `read` makes of the reply, or of a second one after showing the error.

    A reply that was cut off is not read, even if its part looks whole: `Verdict: 1` may be a line
    of its reasoning. Raises ReplyError: both replies were unusable.
    """

    def read_whole(completion: Completion) -> Kind:
        if completion.finish == "length":
            raise UnusableReply(
                "The reply was cut off at its token limit; say the same in fewer words."
            )
        if UNFINISHED_THOUGHT.match(completion.text):
            raise UnusableReply("The reply holds only thoughts, and no answer after them.")
        return read(completion)

    first = ask(messages, again=False)
    try:
        return read_whole(first)
    except UnusableReply as error:
        wrong = str(error)
    second = ask((*messages, Message("assistant", first.text), mend(wrong)), again=True)
    try:
        return read_whole(second)
    except UnusableReply as error:
        is_cut = second.finish == "length"
        why = "It was cut off at its token limit. Give the agent more tokens." if is_cut else error
        message = f"Its reply could not be used, nor could the one after it was asked again: {why}"
        raise ReplyError(message, reply=second.text) from error


def extract_answer(text: str) -> str:
    """Return the reply without its thoughts, a courtesy before it, and a code fence around it."""
    text = COURTESY.sub("", THOUGHT.sub("", text, count=1), count=1)
    fenced = WHOLLY_FENCED.fullmatch(text)
    return fenced[1] if fenced and "```" not in fenced[1] else text


def find_object(text: str, names: Iterable[str]) -> dict[str, Any]:
    """Return the JSON object in a reply, repaired, with its fields spelled as in `names`.

    Raises UnusableReply: there is none, or several.
    """
    spellings = {_fold(name): name for name in names}

    def spell(value: Any) -> Any:
        if isinstance(value, list):
            return [spell(part) for part in value]
        if not isinstance(value, dict):
            return value
        other = {spellings.get(_fold(key), key): spell(part) for key, part in value.items()}
        return other | {key: spell(part) for key, part in value.items() if key in other}

    found: dict[str, Any] = spell(_repair_json(_extract_object(text)))
    return found


def _fold(name: str) -> str:
    """Return the name without capitals and separators: `becauseOf` and `Because of` are equal."""
    return re.sub(r"[\W_]", "", name).casefold()


def _extract_object(text: str) -> str:
    """Return the likeliest JSON object: inside a code fence, else between the outer braces."""
    fenced = FENCED.search(text)
    inner = fenced.group(1) if fenced and "{" in fenced.group(1) else text
    start, end = inner.find("{"), inner.rfind("}")
    if start < 0 or end < start:
        raise UnusableReply("no object")
    return inner[start : end + 1]


def _repair_json(text: str) -> dict[str, Any]:
    if _measure_depth(text) > MAX_REPLY_DEPTH:
        raise UnusableReply("no object")
    try:
        found, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        if len(text) > MAX_REPAIRED_CHARS:
            raise UnusableReply("too long to repair") from None
        found, end = json_repair.loads(text), len(text)
    if FURTHER_OBJECT.search(text, end):  # which of them counts is not guessed
        raise UnusableReply("several objects")
    if not isinstance(found, dict):
        raise UnusableReply("no object")
    return found


def _measure_depth(text: str) -> int:
    steps = (1 if char in "{[(" else -1 for char in text if char in "{[()]}")
    return max(accumulate(steps, lambda depth, step: max(0, depth + step)), default=0)


def _measure_strict_depth(text: str) -> int:
    """Return `_measure_depth` for strict JSON, ignoring brackets within strings."""
    depth = deepest = 0
    is_string = False
    for found in MARK.finditer(text):
        mark = found.group()
        if mark == '"':
            is_string = not is_string
        elif not is_string and mark in "{[]}":
            depth += 1 if mark in "{[" else -1
            deepest = max(deepest, depth)
    return deepest


def map_schema(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return the schema with `change` applied to each of its objects, inner ones first."""
    if isinstance(schema, list):
        return [map_schema(part, change) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return change({key: map_schema(value, change) for key, value in schema.items()})


def close_schema(schema: Any) -> Any:
    """Return the schema without titles, whose objects allow no fields but their own."""

    def close(part: dict[str, Any]) -> dict[str, Any]:
        is_object = part.get("type") == "object" and "properties" in part
        kept = {key: value for key, value in part.items() if key != "title"}
        return kept | ({"additionalProperties": False} if is_object else {})

    return map_schema(schema, close)


def with_property_schema(schema: Any, name: str, found: Mapping[str, Any]) -> Any:
    """Return the schema with `found` as the schema of every property of that name."""

    def put(part: dict[str, Any]) -> dict[str, Any]:
        properties = part.get("properties")
        if not isinstance(properties, dict) or name not in properties:
            return part
        return part | {"properties": properties | {name: dict(found)}}

    return map_schema(schema, put)


def strip_bounds(schema: Any) -> Any:
    """Return the schema without bounds, for providers."""
    return map_schema(schema, lambda part: {k: v for k, v in part.items() if k not in BOUNDS})


def bound_schema(schema: Any) -> Any:
    """Return the schema with a bound on every list and text, which a small model may never end.

    For servers that decode by a grammar; OpenAI's own refuses lengths of texts.
    """
    return map_schema(schema, _bound)


def _bound(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") == "number" and (part.get("minimum"), part.get("maximum")) == (0, 1):
        return {"enum": PROBABILITIES}  # grammars know no bounds of decimal fractions
    if part.get("type") == "array":
        part.setdefault("maxItems", len(part["items"].get("enum", ())) or MAX_ITEMS)
    if part.get("type") == "string" and "enum" not in part:
        part.setdefault("maxLength", MAX_TEXT_CHARS)
    return part
