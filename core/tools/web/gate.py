"""Which addresses may be connected to: public ones, and the one origin that the operator named.

A name is resolved once and every address that it has must pass; the connection then goes to an
address that passed, so that a name cannot point elsewhere between the look and the connection.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from core.errors import ConfigError, ModelError

Resolve = Callable[[str, int], Sequence[str]]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
PORTS = {"http": 80, "https": 443}
# Where clouds hand out a machine's own keys; this one lies among public addresses.
METADATA = frozenset({"168.63.129.16", "169.254.169.254", "fd00:ec2::254", "100.100.100.200"})
EMBEDDING = ipaddress.ip_network("64:ff9b::/96")  # NAT64: an IPv4 address within
THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")


def resolved(host: str, port: int) -> list[str]:
    """All addresses that the system knows for a name, in its order.

    Raises:
        OSError: it knows none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True)
class Gate:
    """What may be connected to.

    `named` are origins (`scheme://host:port`) that the operator wrote into the settings: these,
    to the letter, may use http and lie on this computer or in a private network.
    """

    named: frozenset[str] = frozenset()
    resolve: Resolve = resolved

    def addresses_of(self, url: str) -> list[str]:
        """The addresses to connect to for that URL, in order of preference.

        Raises:
            ConfigError: it leads where nothing may be fetched from.
            ModelError: its name cannot be resolved.
        """
        origin = origin_of(url)
        parts = urlsplit(origin)
        host, port = parts.hostname or "", parts.port or 0
        is_named = origin in self.named
        if parts.scheme != "https" and not is_named:
            raise ConfigError(f"Expected https for {host}, found {parts.scheme}; nothing was sent.")
        try:
            found = list(self.resolve(host, port))
        except (OSError, UnicodeError) as error:
            raise ModelError(f"{host} was not found: no address is known for that name.") from error
        if not found:
            raise ModelError(f"{host} was not found: no address is known for that name.")
        for address in found:
            if why := why_refused(address, is_named=is_named):
                raise ConfigError(
                    f"{host} leads to {why}; nothing was sent. Expected an address on the internet."
                )
        return found


def origin_of(url: str) -> str:
    """`scheme://host:port` of a URL, the port always said.

    Raises:
        ConfigError: it is no web address, or carries a name and password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigError(f"Expected a web address, found “{url[:80]}”: {error}.") from error
    if parts.scheme not in PORTS or not host:
        raise ConfigError(
            f"Expected an address that begins with http:// or https://, found “{url[:80]}”."
        )
    if "@" in parts.netloc:
        raise ConfigError("Expected an address without a name and password before “@”; leave them.")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{port or PORTS[parts.scheme]}"


def why_refused(text: str, *, is_named: bool = False) -> str:
    """Why nothing is fetched from an address, in words; empty where it may be.

    A named origin may be private or this computer, but no link-local or metadata address.
    """
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "something that is no address"
    if str(address) in METADATA or address.is_link_local:
        return "an address at which machines keep their keys"
    if address.is_multicast or address.is_unspecified or _is_nobodys(address):
        return "an address that belongs to no one server"
    is_inside = address.is_private or address.is_loopback or _is_of_a_site(address)
    if is_inside and is_named:
        return ""
    if is_inside or not address.is_global:
        return "this computer or a private network"
    return ""


def _is_of_a_site(address: Address) -> bool:
    """True for the private IPv6 addresses of old, which `is_private` leaves out."""
    return isinstance(address, ipaddress.IPv6Address) and address.is_site_local


def _is_nobodys(address: Address) -> bool:
    """True for reserved addresses, and for IPv6 ones that stand for IPv4: no name has such."""
    if address.is_loopback:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_reserved or address in THIS_NETWORK
    return address.is_reserved or address in EMBEDDING or bool(address.sixtofour or address.teredo)
