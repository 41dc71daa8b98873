"""What the pre-flight asks of the machine and the network: its addresses, whether an address answers, and how far its clock is off.

Owns the asking. What to make of the answers is for `pages.classroom.address` and `pages.classroom.preflight`.
"""

from __future__ import annotations

import email.utils
import json
import socket
import ssl
import struct
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from pages.classroom.address import Interface

ANSWER_LIMIT_S = 3.0
"""How long an address may take to answer; a phone's user is less patient."""
LONGEST_ANSWER = 100_000
SIOCGIFADDR = 0x8915
"""Linux: the address of an interface."""
ROUTES = ("192.168.255.254", "10.255.255.254", "172.31.255.254", "198.51.100.1")
"""Where a socket is pointed, and nothing sent, to learn by which of its own addresses this machine would go there."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came from an address, asked from this machine."""

    ours: bool
    """Shardlab answered."""
    fault: str = ""
    """Why not, in words that follow “it”."""
    ahead_s: float | None = None
    """How far the clock of whoever answered is ahead of ours; None where it does not say."""


def interfaces() -> tuple[Interface, ...]:
    """The addresses of this machine, each once; without names where the system does not tell them."""
    named = _named() or [Interface(name="network", address=address) for address in _routed()]
    return tuple({each.address: each for each in named if each.kind != "loopback"}.values())


def in_container(root: Path = Path("/")) -> bool:
    """Whether this process runs in a container with a network of its own, as far as a container tells."""
    return any((root / name).exists() for name in (".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io"))


def ask(url: str, *, limit_s: float = ANSWER_LIMIT_S) -> Answer:
    """Ask `url` for /healthz, as a phone would: without the proxy that this machine may be set to use."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/healthz", timeout=limit_s) as response:
            return Answer(ours=_is_ours(response.read(LONGEST_ANSWER)), fault="is answered by something else",
                          ahead_s=_ahead_s(response.headers.get("Date")))
    except urllib.error.HTTPError as error:
        return Answer(ours=False, fault=f"is answered with error {error.code}", ahead_s=_ahead_s(error.headers.get("Date")))
    except (OSError, HTTPException, ValueError) as error:
        return Answer(ours=False, fault=_in_words(error))


def _is_ours(body: bytes) -> bool:
    try:
        found = json.loads(body)
    except ValueError:
        return False
    return isinstance(found, dict) and {"launcher", "records", "lessons"} <= set(found)


def _ahead_s(date: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date or "").timestamp() - time.time()
    except (TypeError, ValueError):
        return None


def _in_words(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLError):
        return "has a certificate that is not trusted here"
    if isinstance(reason, TimeoutError):
        return f"does not answer within {ANSWER_LIMIT_S:.0f} s"
    if isinstance(reason, socket.gaierror):
        return "has a name that nobody knows here"
    if isinstance(reason, ConnectionRefusedError):
        return "refuses connections"
    return f"cannot be opened ({reason})"


def _named() -> list[Interface]:
    """Linux only."""
    try:
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            found = []
            for _, name in socket.if_nameindex():
                try:
                    told = fcntl.ioctl(asking.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                except OSError:  # it has no address
                    continue
                found.append(Interface(name=name, address=socket.inet_ntoa(told[20:24])))
            return found
    except (ImportError, OSError):
        return []


def _routed() -> list[str]:
    found = []
    for target in ROUTES:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            try:
                asking.connect((target, 9))
                found.append(str(asking.getsockname()[0]))
            except OSError:  # no way there
                continue
    return found
