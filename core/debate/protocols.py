"""All protocols of debate by name; the audit, which debates only what stays open, is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from core.debate import ceda, ensemble, single
from core.debate.floor import DebateProtocol

PROTOCOLS: Mapping[str, DebateProtocol] = {
    protocol.name: protocol for protocol in (ceda.PROTOCOL, single.PROTOCOL, ensemble.PROTOCOL)
}
