"""Limits on what is sent to one provider, shared by all calls of this process.

Each attempt counts, retries too. A limit's window slides: no stretch of that length holds more than
is allowed, whatever the clock says. Requests are spread over the window instead of sent at once. A
request counts from when its last byte was written, as far as the client tells.
"""

from __future__ import annotations

import asyncio
import math
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from core.llm.call import is_elsewhere, provider_of
from core.runtime.errors import InputError
from core.schema.rosters import AgentConfig, RosterConfig

RateUnit = Literal["requests", "tokens"]
RATE_FORM = re.compile(r"(\S+)=(\d{1,12})\s*(tokens?)?/(s|min)")
MARGIN = 1.02  # of a window's length, as requests that leave evenly may arrive unevenly
SPREAD = 0.95  # of the even gap between two requests
CATCH_UP_SECONDS = 0.1  # of lateness in waking that the next requests make up for


@dataclass(frozen=True)
class RateLimit:
    """At most `amount` requests or tokens in any `seconds`."""

    amount: float
    seconds: float
    unit: RateUnit = "requests"


RateLimits = Mapping[str, tuple[RateLimit, ...]]  # by provider, or host (with a port) of a server


def parse_rates(texts: Iterable[str]) -> RateLimits:
    """Parse `openai=50/s`, `127.0.0.1:8080=300/min` and `openai=200000tokens/min`.

    Raises InputError for any other form.
    """
    limits: dict[str, tuple[RateLimit, ...]] = {}
    for text in texts:
        found = RATE_FORM.fullmatch(text.strip())
        if found is None or int(found[2]) < 1:
            raise InputError(
                "Expected a rate such as openai=50/s, 127.0.0.1:8080=300/min or "
                f"openai=200000tokens/min, found “{text[:80]}”."
            )
        seconds = 1.0 if found[4] == "s" else 60.0
        limit = RateLimit(int(found[2]), seconds, "tokens" if found[3] else "requests")
        limits[found[1]] = (*limits.get(found[1], ()), limit)
    return limits


@dataclass(eq=False)  # two that were sent at once are two
class _SentRequest:
    at: float
    weight: float


class RateWindow:
    """What was sent in the last seconds of one limit."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._seconds = limit.seconds * MARGIN
        is_spread = limit.unit == "requests"
        self._gap = SPREAD * limit.seconds / limit.amount if is_spread else 0.0
        self._sent: deque[_SentRequest] = deque()
        self._sum = 0.0
        self._newest = -math.inf

    def find_pause(self, now: float, tokens: int) -> float:
        """Return the seconds until another request fits; one that is too large fits alone."""
        while self._sent and self._sent[0].at <= now - self._seconds:
            self._sum -= self._sent.popleft().weight
        if not self._sent:
            return 0.0
        pause = self._newest + self._gap - now
        excess = self._sum + self._weigh(tokens) - self._limit.amount
        for one in self._sent:
            if excess <= 0:
                break
            excess -= one.weight
            pause = max(pause, one.at + self._seconds - now)
        return pause

    def add(self, now: float, tokens: int) -> _SentRequest:
        """Note a request that is sent now, and return it: it may be sent a bit later."""
        one = _SentRequest(now, self._weigh(tokens))
        self._sent.append(one)
        self._sum += one.weight
        self._newest = min(now, max(self._newest + self._gap, now - CATCH_UP_SECONDS))
        return one

    def mark_written(self, one: _SentRequest, now: float) -> None:
        """Count a request from now on; the order stays that of time, by which they are dropped."""
        if one in self._sent:
            self._sent.remove(one)
        else:  # its window had passed
            self._sum += one.weight
        one.at = now
        self._sent.append(one)

    def _weigh(self, tokens: int) -> float:
        return 1.0 if self._limit.unit == "requests" else float(tokens)


class RateLimiter:
    """Lets requests through within all limits of one provider; all of them wait on one loop."""

    def __init__(
        self,
        limits: Iterable[RateLimit],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._windows = [RateWindow(limit) for limit in limits]
        self._clock = clock
        self._sleep = sleep
        self._turn = asyncio.Lock()

    async def wait(self, tokens: int) -> Callable[[], None]:
        """Wait until a request of so many tokens may be sent, in the order of those who ask.

        Call what it returns once the request has been written.
        """
        async with self._turn:
            while True:
                now = self._clock()
                pause = max((w.find_pause(now, tokens) for w in self._windows), default=0.0)
                if pause <= 0:
                    break
                await self._sleep(pause)
            sent = [window.add(now, tokens) for window in self._windows]

        def mark_written() -> None:
            for window, one in zip(self._windows, sent, strict=True):
                window.mark_written(one, self._clock())

        return mark_written


_rates: RateLimits = {}
_share = 1.0
_limiters: dict[tuple[str, int], RateLimiter] = {}
_limiters_lock = threading.Lock()


def set_rates(rates: RateLimits, share: float = 1.0) -> None:
    """Set the rates of this process, which are its `share` of what all processes may send."""
    global _rates, _share
    with _limiters_lock:
        _rates, _share = rates, share
        _limiters.clear()


def get_rates() -> RateLimits:
    """Return the rates of this process."""
    return _rates


async def await_turn(agent: AgentConfig, tokens: int, usual: int) -> Callable[[], None]:
    """Wait until the agent's provider may be sent a request of so many tokens.

    Returns what is to be called once it has been written. `usual` is how many requests a second are
    allowed where no rate is set; 0 is no limit. Called on the loop that sends, right before it
    does: a thread would wait for the interpreter in between, and requests that left evenly would
    arrive together.
    """
    name, limits = _find_limits(agent)
    if limits:
        usual = 0  # all clients share the rate that was set
    elif usual:
        limits = (RateLimit(usual, 1.0),)
    else:
        return lambda: None
    with _limiters_lock:
        if (limiter := _limiters.get((name, usual))) is None:
            shares = (RateLimit(one.amount * _share, one.seconds, one.unit) for one in limits)
            limiter = _limiters[name, usual] = RateLimiter(shares)
    return await limiter.wait(tokens)


def require_used_rates(*rosters: RosterConfig | None) -> None:
    """Raise InputError if a rate of this process is of no provider or server of these rosters."""
    used: dict[str, None] = {}
    for _, agent in (pair for one in rosters if one for pair in one.agents_by_role()):
        if is_elsewhere(agent):
            parts = urlsplit(agent.api_base)
            used |= dict.fromkeys((parts.netloc.rpartition("@")[2], parts.hostname or ""))
        elif not agent.is_built_in:
            used[provider_of(agent) or ""] = None
    for name in _rates:
        if name not in used:
            known = " or ".join(filter(None, used)) or "none, as no model is asked"
            raise InputError(
                f"Expected --rate of a provider or server that the agents use ({known}), found "
                f"“{name[:80]}”."
            )


def _find_limits(agent: AgentConfig) -> tuple[str, tuple[RateLimit, ...]]:
    """Return the name under which requests are counted together, with its limits."""
    if is_elsewhere(agent):
        parts = urlsplit(agent.api_base)
        place = parts.netloc.rpartition("@")[2]
        return place, _rates.get(place) or _rates.get(parts.hostname or "", ())
    name = provider_of(agent) or ""
    return name, _rates.get(name, ())
