"""What went wrong at a provider, in our error tree, and asking again where that may help."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from core.llm.call import provider_of, shown_address
from core.llm.keys import Keys
from core.runtime.concurrency import StopSignal
from core.runtime.errors import (
    ConfigError,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ReplyError,
    ReviewError,
)
from core.schema.rosters import AgentConfig

LONGEST_QUOTE = 240
AGAIN = " Check again later."
# 408 to 429: somebody else was first, or we were too quick; 425 is “too early”.
PASSING = frozenset({408, 409, 425, 429})
DECLINED = frozenset({400, 404, 413, 422})
# What httpx and aiohttp raise where a connection ends too early.
CLOSED = frozenset(
    {"ReadError", "WriteError", "RemoteProtocolError", "ServerDisconnectedError",
     "ClientOSError", "ClientPayloadError", "TransferEncodingError"}
)  # fmt: skip
# Parts of a request that some servers do not know, by the words with which they refuse them.
RELAXABLE: dict[str, re.Pattern[str]] = {
    "max_tokens": re.compile(r"max_completion_tokens"),
    "temperature": re.compile(r"temperature"),
    "stream_options": re.compile(r"stream_options|include_usage"),
    "system": re.compile(
        r"system.{0,12}(role|message|prompt|instruction)|role.{0,30}system|roles must alternate"
        r"|only user and assistant|developer instruction",
        re.IGNORECASE,
    ),
    "schema": re.compile(r"response_format|json_schema|structured|schema"),
}
_CONTEXT = re.compile(
    r"context.{0,12}(length|window|size)|too many tokens|prompt is too long|maximum.{0,20}tokens",
    re.IGNORECASE,
)
_POLICY = re.compile(r"content.{0,12}(policy|filter|management)|safety|guardrail", re.IGNORECASE)
_UNKNOWN_MODEL = re.compile(
    r"model\W.{0,80}(not found|not exist|unknown|not available|not supported)"
    r"|(unknown|invalid|no such) model|model identifier is invalid",
    re.IGNORECASE | re.DOTALL,
)
_SPENT = re.compile(r"insufficient_quota|exceeded your current quota|billing|credit", re.IGNORECASE)
_INSIDES = re.compile(r" Original exception:|Traceback \(most recent call last\)")
_WRAPPING = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout)\w*(?::| -)\s*")


@dataclass(frozen=True)
class CallFault:
    """A failed attempt: the error to raise, and whether another attempt makes sense.

    `wait` is the provider's own word on when to come back, in seconds. `relax` names the part of
    the request to leave out in another attempt. `is_unbilled` as in `ModelError`.
    """

    error: ReviewError
    is_passing: bool = False
    wait: float | None = None
    relax: str = ""
    is_unbilled: bool = False


@dataclass(frozen=True)
class FaultReader:
    """Reads the errors of one agent's calls. `hide` takes keys out of what is quoted."""

    agent: AgentConfig
    keys: Keys
    hide: Callable[[str], str]

    @property
    def who(self) -> str:
        """The model and its address, for display."""
        return f"{self.agent.model} at {shown_address(self.agent)}"

    def of(self, error: BaseException, sent: Mapping[str, Any], *, has_begun: bool) -> CallFault:
        """Return the fault behind a client's error; `has_begun` if any text had arrived."""
        if not has_begun and _is_sent_on(error):
            refusal = ConfigError(
                f"{self.who} answered that what was asked for is at another address. Keys and "
                "prompts go only where an agent says: give it the address that answers itself."
            )
            return CallFault(refusal, is_unbilled=True)
        words = "a closed connection" if _is_closed(error) else self.quoted(error)
        if too_long := self._too_long(error, words):
            return too_long
        is_midway = type(error).__name__ == "MidStreamFallbackError" or _is_of_transport(error)
        if has_begun or is_midway:
            return self.broken_off(words, has_begun=has_begun)
        # Nothing is billed where the service answered with an error, was never reached, or hung up.
        is_unanswered = _is_out_of_reach(error) or _is_closed(error)
        is_unbilled = is_unanswered or _headers(error) is not None
        return replace(self._unanswered(error, words, sent), is_unbilled=is_unbilled)

    def _unanswered(self, error: BaseException, words: str, sent: Mapping[str, Any]) -> CallFault:
        """Return the fault of a call that got an error, or no connection, instead of an answer."""
        status = getattr(error, "status_code", None)
        if _is_out_of_reach(error):
            hint = "cannot be reached. Is it running, and is the address right?"
            return CallFault(ModelError(f"{self.who} {hint}{AGAIN}"), is_passing=True)
        if _is_closed(error):  # libraries call it a status of 500, which nobody sent
            hint = "closed the connection without an answer. Is the server behind it running?"
            return CallFault(ModelError(f"{self.who} {hint}{AGAIN}"), is_passing=True)
        if "LLM Provider NOT provided" in str(error):
            return CallFault(
                ConfigError(
                    "Expected a model's name as provider/model, such as openai/gpt-4o-mini or "
                    f"ollama_chat/llama3.2, found “{self.agent.model}”. A server of your own also "
                    "needs its address."
                )
            )
        if _SPENT.search(str(error)) and status in (402, 429):
            return CallFault(
                ModelError(f"The account behind {self.who} has no credit left: {words}.")
            )
        if status in (401, 403):
            return CallFault(self._wrong_key(status, words))
        if status == 500 and _is_refused("system", str(error), sent):  # by a chat template
            return CallFault(self._failed(status, words), relax="system")
        if status in DECLINED:
            return self._declined(status, str(error), words, sent)
        is_passing = not isinstance(status, int) or status in PASSING or status >= 500
        wait = retry_after(error) if is_passing else None
        return CallFault(self._failed(status, words), is_passing=is_passing, wait=wait)

    def silent(self, seconds: float) -> ModelTimeout:
        """Return the error for a service that sent nothing for so long."""
        return ModelTimeout(
            f"{self.who} was silent for {seconds:g} seconds, the longest that its agent waits. "
            "Check again later, or give the agent more seconds."
        )

    def endless(self, seconds: float) -> ModelTimeout:
        """Return the error for a stream that outlasted the longest call."""
        return ModelTimeout(
            f"{self.who} had not finished after {seconds:g} seconds, the longest that a call may "
            "take. Give the agent a lower token limit, or more seconds."
        )

    def too_long(self, characters: int, received: str) -> ReplyError:
        """Return the error for an answer beyond any length; `received` is what arrived."""
        return ReplyError(
            f"{self.who} sent more than {characters:,} characters and went on: it keeps to no "
            "token limit. What came is not used. Take another model or server.",
            reply=self.hide(received),
        )

    def broken_off(self, words: str, *, has_begun: bool) -> CallFault:
        """Return the fault of a stream that broke off; what arrived is not used."""
        came = "What came before is not used." if has_begun else "Nothing came before."
        error = ModelError(
            f"The answer of {self.who} broke off: expected a whole stream, found {words}. {came}"
        )
        return CallFault(error, is_passing=not has_begun)

    def not_a_stream(self) -> CallFault:
        """Return the fault of an answer without any event, such as a web page or an empty body."""
        return CallFault(
            ModelError(
                f"Expected a chat-completions stream from {self.who}, found none. Is the address "
                "right? It usually ends in /v1."
            )
        )

    def quoted(self, error: BaseException) -> str:
        """Quote the provider's message, shortened, without keys and the client's wrapping."""
        body = getattr(error, "body", None)  # of the openai client: the reply's own `error`
        message = body.get("message") if isinstance(body, dict) else None
        text = message if isinstance(message, str) else str(error)
        text = _INSIDES.split(self.hide(text), maxsplit=1)[0]
        while (bare := _WRAPPING.sub("", text, count=1)) != text:
            text = bare
        text = " ".join(_message_in(text).split())
        text = "".join(char if char.isprintable() else "�" for char in text)
        if len(text) > LONGEST_QUOTE:
            text = text[: LONGEST_QUOTE - 1] + "…"
        return f"“{text.rstrip('.')}”" if text else "no words"

    def _wrong_key(self, status: int, words: str) -> ConfigError:
        name = self.keys.name_for(self.agent)
        origin = {
            "typed": "as typed in this session",
            "secrets": "from .streamlit/secrets.toml",
            "environment": "from the environment",
        }
        sent = "No key was sent: set COUNTERPOINT_API_KEY, or name the key in the agent."
        if name:
            place = origin[self.keys.where(name) or "environment"]
            sent = f"The key sent was {name}, {place}: put it right there."
        return ConfigError(f"{self.who} refused the key ({status}): {words}. {sent}")

    def _declined(self, status: int, text: str, words: str, sent: Mapping[str, Any]) -> CallFault:
        relax = self._to_relax(text, sent) if status in (400, 422) else ""
        if relax:
            return CallFault(self._failed(status, words), relax=relax)
        if _POLICY.search(text):
            refusal = f"The content filter of {self.who} declined the request: {words}."
            return CallFault(ModelRefused(refusal, reply=words))
        if status != 404 and not _UNKNOWN_MODEL.search(text):
            return CallFault(self._failed(status, words))
        hint = "Is the model's name right?"
        if self.agent.api_base:
            own = provider_of(self.agent) or "openai"
            hint = (
                "Is the model's name right, and the address (it usually ends in /v1)? A server's "
                f"own name that begins with “{own}/” is written openai/{own}/…"
            )
        unknown = f"{self.who} does not know that model ({status}): {words}. {hint}"
        return CallFault(ConfigError(unknown))

    def _too_long(self, error: BaseException, words: str) -> CallFault | None:
        """Return the fault of a prompt that exceeds the model's window, also within a stream."""
        text, status = str(error), getattr(error, "status_code", None)
        is_declined = status is None or status in DECLINED
        if not is_declined or not _CONTEXT.search(text) or "max_completion_tokens" in text:
            return None
        return CallFault(
            ModelError(
                f"The prompt is longer than the window of {self.who}: {words}. Give the agent "
                "its true window, or take a model with a longer one."
            ),
            is_unbilled=_headers(error) is not None,
        )

    def _failed(self, status: object, words: str) -> ModelError:
        code = f" ({status})" if isinstance(status, int) else ""
        return ModelError(f"{self.who} failed{code}: {words}.{AGAIN}")

    def _to_relax(self, text: str, sent: Mapping[str, Any]) -> str:
        """Return the part of the request that the refusal names, if it was sent."""
        for part in RELAXABLE:
            if _is_refused(part, text, sent):
                return part
        # A server may refuse a schema in words of its own; one attempt without it tells.
        return "schema" if "response_format" in sent and not _UNKNOWN_MODEL.search(text) else ""


def _is_refused(part: str, text: str, sent: Mapping[str, Any]) -> bool:
    """Return True if the refusal names this part of the request, and it was sent."""
    if part == "system":
        is_sent = any(message["role"] == "system" for message in sent.get("messages", ()))
    else:
        is_sent = ("response_format" if part == "schema" else part) in sent
    return is_sent and RELAXABLE[part].search(text) is not None


def _headers(error: BaseException) -> Any:
    """Return the headers of a real answer; litellm's own `response` may be invented."""
    if type(error).__module__.startswith("openai"):
        return getattr(getattr(error, "response", None), "headers", None)
    return getattr(error, "litellm_response_headers", None)


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that a Retry-After header asks for, as seconds or as a date."""
    headers = _headers(error) or getattr(getattr(error, "response", None), "headers", None) or {}
    value = str(headers.get("retry-after") or "").strip()
    with contextlib.suppress(ValueError):
        return max(0.0, float(value))
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _is_out_of_reach(error: BaseException) -> bool:
    """Return True if no connection was made, so nothing of the request was sent."""
    return any(type(each).__name__ in ("ConnectError", "ConnectTimeout") for each in _all_of(error))


def _is_closed(error: BaseException) -> bool:
    """Return True if the other side closed the connection before the end of its answer."""
    return _headers(error) is None and any(type(each).__name__ in CLOSED for each in _all_of(error))


def _is_of_transport(error: BaseException) -> bool:
    """Return True if it comes bare from the transport, as while a stream is read."""
    return type(error).__module__.partition(".")[0] in ("httpx", "aiohttp")


def _is_sent_on(error: BaseException) -> bool:
    answers = (getattr(each, "response", None) for each in _all_of(error))
    statuses = [getattr(answer, "status_code", None) for answer in answers]
    statuses.append(getattr(error, "status_code", None))
    return any(isinstance(status, int) and 300 <= status < 400 for status in statuses)


def _all_of(error: BaseException) -> list[BaseException]:
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return seen


def _message_in(text: str) -> str:
    """Return the message inside an error that some providers pass on as JSON."""
    try:
        found: Any = json.loads(text[text.index("{") :])
    except (ValueError, RecursionError):
        return text
    found = found.get("error", found) if isinstance(found, dict) else found
    message = found.get("message") if isinstance(found, dict) else found
    return message if isinstance(message, str) else text


T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to retry; `backoff` and `longest_wait` in seconds.

    `overall` says how many times its agent's longest silence a whole call may take.
    """

    tries: int = 3
    backoff: float = 1.0
    longest_wait: float = 30.0
    overall: float = 10.0

    def longest(self, silence: float) -> float:
        """Return the seconds that a whole call may take."""
        return silence * self.overall


# Which parts of a request each server was found to refuse, while this process lives.
_RELAXED: dict[tuple[str, str], frozenset[str]] = {}


def answer_with_retries(
    attempt: Callable[[frozenset[str]], T | CallFault],
    agent: AgentConfig,
    stop: StopSignal,
    retry_policy: RetryPolicy,
) -> T:
    """Return the answer of the first attempt that gives one.

    `attempt` is told which parts of the request to leave out. Only what failed before its first
    word is tried again, and only where the fault says that this may help.

    Raises:
        ReviewError: the last attempt's.
        Stopped: `stop` was set, also while waiting.
    """
    server = agent.model, agent.api_base
    relaxed = _RELAXED.get(server, frozenset())
    tries = 0
    is_unbilled = True
    while isinstance(found := attempt(relaxed), CallFault):
        stop.check()
        is_unbilled = is_unbilled and found.is_unbilled
        if found.relax and found.relax not in relaxed:
            relaxed |= {found.relax}
            continue
        tries += 1
        error, pause = _after(found, tries, retry_policy)
        if isinstance(error, ModelError):
            error.is_unbilled = is_unbilled
        if pause is None:
            raise error
        stop.wait(pause)
    # Only now: the refusal may have had another cause, which an answer rules out.
    _RELAXED[server] = _RELAXED.get(server, frozenset()) | relaxed
    return found


def _after(
    fault: CallFault, tries: int, retry_policy: RetryPolicy
) -> tuple[ReviewError, float | None]:
    """Return the error to raise, and the seconds until another attempt or None."""
    error = fault.error
    words = str(error).removesuffix(AGAIN)
    if not fault.is_passing:
        return error, None
    if fault.wait is not None and fault.wait > retry_policy.longest_wait:
        asks = f"It asks to be left alone for {fault.wait:.0f} seconds"
        most = f"longer than the {retry_policy.longest_wait:g} that a run waits"
        return ModelError(f"{words} {asks}, {most}. Check again then."), None
    if tries >= retry_policy.tries:
        return ModelError(f"{words} That was attempt {tries}.{AGAIN}"), None
    wait = retry_policy.backoff * 2.0 ** (tries - 1) if fault.wait is None else fault.wait
    return error, min(wait, retry_policy.longest_wait)
