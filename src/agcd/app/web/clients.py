"""Who counts as one client."""

from __future__ import annotations

import ipaddress

_IPV6_HOME = 64
"""Bits of an IPv6 address that tell one client from another; the rest it may choose as it likes."""
_LONGEST = 100


def client_of(address: str) -> str:
    """Whose connections and guesses are counted together: those of one IPv4 address, or of one IPv6 network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:_LONGEST]
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found), _IPV6_HOME), strict=False))
