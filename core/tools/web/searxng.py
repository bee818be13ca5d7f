"""A SearXNG server of the operator's own choice: snippets of the five best pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from core.concurrency import Stop
from core.errors import ModelError
from core.tools.toolbox import Found
from core.tools.web.fetch import Fetch
from core.tools.web.provider import MOST_RESULTS, NO_HEADERS, Refusal, body_of, found_of

REFUSALS = (
    Refusal(
        403,
        "it does not answer in JSON; add “json” to search.formats in its settings.yml, or let this "
        "computer past its limiter.",
    ),
    Refusal(404, "there is no search at that address; give the one that its page has."),
)


class _Result(msgspec.Struct):
    url: str = ""
    title: str | None = None
    content: str | None = None


class _Reply(msgspec.Struct):
    results: list[_Result]
    unresponsive_engines: list[Any] = []


@dataclass(frozen=True)
class SearXng:
    """The server at `address`, without its `/search`."""

    address: str

    name = "SearXNG"

    @property
    def service(self) -> str:
        """The server."""
        return f"searxng {self.address}"

    def search(self, query: str, language: str, fetch: Fetch, stop: Stop) -> tuple[Found, ...]:
        """Snippets; silent engines are a failure where nobody found anything."""
        params = {"q": query, "format": "json"}
        if language != "und":
            params["language"] = language
        url = f"{self.address.rstrip('/')}/search"
        reply = body_of(fetch(url, params, stop, NO_HEADERS), self.name, _Reply, REFUSALS)
        found = (found_of(r.title or "", r.url, r.content or "", self.name) for r in reply.results)
        kept = tuple(one for one in found if one)[:MOST_RESULTS]
        if not kept and reply.unresponsive_engines:
            count = len(reply.unresponsive_engines)
            raise ModelError(
                f"{self.name}: {count} of its engines did not answer, the rest found nothing."
            )
        return kept
