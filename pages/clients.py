"""Who asks, as limits know them, and how often one client may fail: codes and links that lead nowhere, wrong keys.

A client is a network address; a class often shares one, so that limits are for machines and a room never meets them. Owns counting, in the
memory of this process, for as many clients as fit. Must not know what is tried.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from starlette.requests import HTTPConnection

CLIENTS_KEPT = 10_000
NETWORK_BITS = 64
"""Of an IPv6 address: what one household or one lecture hall is given, so that its devices cannot multiply."""


def client_of(request: HTTPConnection) -> str:
    """The client of a request, as limits know it."""
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, NETWORK_BITS), strict=False))
    return host


class Tries:
    """When each client last failed: after `most` failures within `within_s` seconds it has to wait."""

    def __init__(self, *, most: int, within_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self.within_s = within_s
        self._now = now
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def too_many(self, client: str) -> bool:
        times = self._times.get(client)
        return times is not None and len(times) == self._most and self._now() - times[0] < self.within_s

    def note(self, client: str) -> None:
        """It failed once more."""
        self._times.setdefault(client, deque(maxlen=self._most)).append(self._now())
        self._times.move_to_end(client)
        while len(self._times) > CLIENTS_KEPT:
            self._times.popitem(last=False)
