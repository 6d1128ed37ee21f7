"""Which addresses of the network a stranger may make us connect to."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]

PORTS: Final = frozenset({80, 443, 8080, 8443})

_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
_TUNNELS: Final = tuple(ipaddress.ip_network(text) for text in ("2002::/16", "2001::/32", "2001:db8::/32"))
_PLATFORM: Final = frozenset({ipaddress.ip_address("168.63.129.16")})
"""Public by number, yet served by the cloud's own host machine."""

# Apart from the loop's own: names that never resolve must not keep others from their threads.
_THREADS: Final = ThreadPoolExecutor(4, thread_name_prefix="names")


class Forbidden(Exception):
    """The text names an address that may not be connected to."""


def is_public(address: Address) -> bool:
    """Whether the address is an ordinary one of the internet, in every reading of it.

    Addresses that carry another one (IPv4-mapped, 6to4, Teredo, NAT64) are refused or judged by what they carry.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address not in _GLOBAL_UNICAST or any(address in network for network in _TUNNELS):
            return False
    return (
        address.is_global
        and not address.is_private
        and not address.is_multicast
        and not address.is_reserved
        and address not in _PLATFORM
    )


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host as the system's resolver gives them, in its order. Raises OSError."""
    found = await asyncio.get_running_loop().run_in_executor(
        _THREADS, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, kw_only=True)
class Network:
    """How names are resolved and what may be connected to. Only tests make another one than PUBLIC."""

    resolve: Resolve = resolve
    is_allowed: Callable[[Address], bool] = is_public
    ports: frozenset[int] | None = PORTS

    async def checked(self, host: str, port: int) -> list[Address]:
        """The addresses to connect to. All of a host's must be allowed: a mixture is an attempt.

        Raises Forbidden, or OSError when the name does not resolve.
        """
        if self.ports is not None and port not in self.ports:
            raise Forbidden(f"port {port} is not one of {', '.join(map(str, sorted(self.ports)))}")
        addresses = [ipaddress.ip_address(text.partition("%")[0]) for text in await self.resolve(host, port)]
        if not addresses:
            raise OSError(f"{host} has no address")
        if not all(self.is_allowed(address) for address in addresses):
            raise Forbidden(f"{host} does not lead to a public address")
        return addresses


PUBLIC: Final = Network()
