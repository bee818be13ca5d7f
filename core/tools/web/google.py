"""Google Programmable Search, which HaluAgent asks (2.2): snippets of the five best pages."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from core.concurrency import Stop
from core.tools.toolbox import Found
from core.tools.web.fetch import Fetch
from core.tools.web.provider import MOST_RESULTS, Refusal, body_of, found_of

ADDRESS = "https://www.googleapis.com/customsearch/v1"
REFUSALS = (
    Refusal(400, "it refused the key or the engine's cx; copy both again."),
    Refusal(401, "it refused the key; copy it again."),
    Refusal(
        403,
        "the key may not be used for searches; switch the Custom Search API on for it in Google's "
        "console, and look at its restrictions.",
    ),
    Refusal(404, "there is no engine of that cx; copy it again."),
)


class _Item(msgspec.Struct):
    link: str
    title: str = ""
    snippet: str = ""


class _Reply(msgspec.Struct):
    items: list[_Item] = []


@dataclass(frozen=True)
class Google:
    """One engine, `cx`, with its key."""

    cx: str
    key: str = field(repr=False)
    address: str = ADDRESS

    name = "Google Programmable Search"

    @property
    def service(self) -> str:
        """The engine; the key does not matter to what it finds."""
        return f"google {self.cx}"

    def search(self, query: str, language: str, fetch: Fetch, stop: Stop) -> tuple[Found, ...]:
        """Snippets; the key travels in a header, where no log of addresses has it."""
        params = {"cx": self.cx, "q": query, "num": str(MOST_RESULTS), "safe": "off"}
        answered = fetch(self.address, params, stop, {"X-Goog-Api-Key": self.key})
        reply = body_of(answered, self.name, _Reply, REFUSALS)
        found = (found_of(i.title, i.link, i.snippet, self.name) for i in reply.items)
        return tuple(one for one in found if one)[:MOST_RESULTS]
