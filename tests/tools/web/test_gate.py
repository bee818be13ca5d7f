"""Where nothing is fetched from, however it is written, and the one exception."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.errors import ConfigError, ModelError
from core.tools.web_fetch import Gate, origin_of, why_refused

INSIDE = [
    "127.0.0.1", "127.8.9.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "::1", "fd12:3456::1", "fc00::1", "fec0::1",
]  # fmt: skip
NEVER = [
    "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "168.63.129.16", "100.100.100.200",  # noqa: S104
    "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "::", "fe80::1",
    "fe80::1%eth0", "ff02::1", "fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:8.8.8.8", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "not an address", "", "127.1",
]  # fmt: skip
SHARED = ["100.64.0.1", "198.18.0.1", "192.0.2.1", "2001:db8::1"]
OUTSIDE = ["8.8.8.8", "91.198.174.192", "2620:0:862:ed1a::1"]


@pytest.mark.parametrize("address", [*INSIDE, *NEVER, *SHARED])
def test_nothing_is_fetched_from_there(address: str) -> None:
    assert why_refused(address)
    with pytest.raises(ConfigError, match="nothing was sent"):
        Gate(resolve=lambda _host, _port: [address]).addresses_of("https://example.org/")


@pytest.mark.parametrize("address", OUTSIDE)
def test_public_addresses_pass(address: str) -> None:
    assert Gate(resolve=lambda _h, _p: [address]).addresses_of("https://a.org/x") == [address]


@pytest.mark.parametrize("address", INSIDE)
def test_a_named_origin_may_be_inside(address: str) -> None:
    gate = Gate(frozenset({"http://search.lan:8080"}), lambda _host, _port: [address])
    assert gate.addresses_of("http://search.lan:8080/search?q=x") == [address]


@pytest.mark.parametrize("address", NEVER)
def test_a_named_origin_is_never_one_of_these(address: str) -> None:
    gate = Gate(frozenset({"http://search.lan:80"}), lambda _host, _port: [address])
    with pytest.raises(ConfigError):
        gate.addresses_of("http://search.lan/")


@pytest.mark.parametrize(
    "url",
    [
        "http://search.lan:8081/", "https://search.lan:8080/", "http://other.lan:8080/",
        "http://search.lan.:8080/", "http://sub.search.lan:8080/", "http://search.lan/",
    ],
)  # fmt: skip
def test_only_that_very_origin_is_named(url: str) -> None:
    gate = Gate(frozenset({"http://search.lan:8080"}), lambda _host, _port: ["192.168.1.1"])
    with pytest.raises(ConfigError):
        gate.addresses_of(url)


def test_one_address_inside_spoils_the_name() -> None:
    gate = Gate(resolve=lambda _host, _port: ["8.8.8.8", "127.0.0.1"])
    with pytest.raises(ConfigError, match="this computer"):
        gate.addresses_of("https://example.org/")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "2130706433", "0x7f.1"])
def test_the_real_resolver_leads_inside_by_no_spelling(host: str) -> None:
    with pytest.raises((ConfigError, ModelError)):
        Gate().addresses_of(f"https://{host}/")


def test_a_name_that_nobody_has_is_said_not_to_be_found() -> None:
    def nobody(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    with pytest.raises(ModelError, match=r"example\.org was not found"):
        Gate(resolve=nobody).addresses_of("https://example.org/")
    with pytest.raises(ModelError, match="not found"):
        Gate(resolve=lambda _host, _port: []).addresses_of("https://example.org/")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.org",
        "file:///etc/passwd",
        "a.org",
        "",
        "https://",
        "http://u:p@a.org",
        "https://a:x/",
    ],
)
def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        origin_of(url)


def test_an_origin_always_says_its_port() -> None:
    assert origin_of("https://A.org/x?y") == "https://a.org:443"
    assert origin_of("http://[::1]:81/") == "http://[::1]:81"


@given(st.ip_addresses())
def test_whatever_is_not_global_is_refused(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if not address.is_global or address.is_multicast:
        assert why_refused(str(address))
    if not (address.is_private or address.is_loopback or address.is_global):
        assert why_refused(str(address), is_named=True)
