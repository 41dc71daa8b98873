"""The address that phones are given: which one it is, and what speaks against it.

A code that a room scans and nobody can open costs the first five minutes of a class. Owns that judgement, as pure functions of what
is known about the server; must not ask the network or the machine (`pages.classroom.probe` does) and must not draw.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

Source = Literal["setting", "page", "interface"]

VIRTUAL = ("docker", "br-", "veth", "virbr", "vbox", "vmnet", "cni", "flannel", "podman", "lxc", "lxd")
"""How interfaces begin that only programs on this machine can reach."""
TUNNELS = ("tun", "tap", "wg", "tailscale", "zt", "utun", "ppp")
"""How interfaces begin that lead into a VPN: phones in the room are not in it."""

PUBLIC = "SHARDLAB_PUBLIC_URL"
ELSEWHERE = f"Start it with --server.address 0.0.0.0, or put a proxy in front and set {PUBLIC}."


@dataclass(frozen=True, kw_only=True)
class Interface:
    """One network address of the server's machine."""

    name: str
    address: str

    @property
    def kind(self) -> Literal["room", "virtual", "tunnel", "loopback", "unset"]:
        """Who can be expected to reach it: only `room` is for phones."""
        address = ipaddress.ip_address(self.address)
        if address.is_loopback:
            return "loopback"
        if address.is_link_local or address.is_unspecified:
            return "unset"
        if self.name.startswith(VIRTUAL):
            return "virtual"
        return "tunnel" if self.name.startswith(TUNNELS) or address in ipaddress.ip_network("100.64.0.0/10") else "room"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What is known about where the server can be reached."""

    page_url: str
    """The address under which the instructor has the page open, without the page's name."""
    public_url: str = ""
    """SHARDLAB_PUBLIC_URL."""
    listens_on: str = ""
    """The address the server is bound to; empty for all of them."""
    interfaces: tuple[Interface, ...] = ()
    in_container: bool = False
    proxied: bool = False
    """The page came through something that names the client it stands for."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """What the QR code says."""

    url: str
    """Without a slash at its end."""
    source: Source

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def short(self) -> str:
        """As one reads it out."""
        return self.url.partition("://")[2]

    def joining(self, code: str) -> str:
        """Where the phones of a class go."""
        return f"{self.url}/c/{code}"


@dataclass(frozen=True, kw_only=True)
class Objection:
    """Why phones may not reach an address, and what to do about it."""

    sure: bool
    """They certainly cannot."""
    words: str
    next: str


def phone_address(around: Surroundings) -> Address:
    """The setting; else the address of the instructor's own browser; else, where that is this machine's own, one of the room's network."""
    if around.public_url:
        return Address(url=around.public_url.rstrip("/"), source="setting")
    if not local_only(urlsplit(around.page_url).hostname or ""):
        return Address(url=around.page_url.rstrip("/"), source="page")
    rooms = _rooms(around.interfaces)
    if rooms and not around.in_container and not _bound_locally(around):
        return Address(url=_with_host(around.page_url, rooms[0].address).rstrip("/"), source="interface")
    return Address(url=around.page_url.rstrip("/"), source="page")


def objections(address: Address, around: Surroundings) -> tuple[Objection, ...]:
    """Everything that speaks against it, the certain ones first."""
    found = [*_about_host(address, around), *_about_server(address, around)]
    return tuple(sorted(found, key=lambda each: not each.sure))


def local_only(host: str) -> bool:
    """Whether a host is the machine on which it is opened, whichever that is."""
    if host.lower().rstrip(".") in ("", "localhost") or host.lower().endswith(".localhost"):
        return True
    number = _number(host)
    return number is not None and (number.is_loopback or number.is_unspecified)


def _about_host(address: Address, around: Surroundings) -> list[Objection]:
    host = address.host
    if local_only(host):
        return [Objection(sure=True, words=f"Phones cannot open {address.url}: for a phone, {host or 'that'} is the phone itself.",
                          next=_better(around))]
    own = next((each for each in around.interfaces if each.address == host), None)
    number = _number(host)
    if number is not None and number.is_link_local:
        return [Objection(sure=True, words=f"{host} is no address of a network: this machine was given none.",
                          next="Join the room's network, then look again.")]
    if own is not None and own.kind == "virtual":
        return [Objection(sure=True, words=f"{host} belongs to {own.name}, which only this machine can reach.", next=_better(around))]
    if own is not None and own.kind == "tunnel":
        return [Objection(sure=False, words=f"{host} belongs to {own.name}, a VPN: phones in the room are not in it.",
                          next=_better(around))]
    if number is None and host.endswith(".local"):
        return [Objection(sure=False, words=f"{host} is found by asking around in the room's network; older phones do not.",
                          next=_better(around))]
    if number is None and "." not in host:
        return [Objection(sure=False, words=f"{host} is a short name: phones seldom know what your network calls this machine.",
                          next=_better(around))]
    return []


def _about_server(address: Address, around: Surroundings) -> list[Objection]:
    found = []
    if _bound_locally(around) and address.source != "setting" and not around.proxied:
        found.append(Objection(
            sure=True, words=f"The server listens on {around.listens_on} only, where no phone can reach it.",
            next=ELSEWHERE,
        ))  # fmt: skip
    own = {each.address for each in around.interfaces}
    if around.in_container and address.source != "setting" and (address.host in own or local_only(address.host)):
        found.append(Objection(
            sure=False, words="The server runs in a container, whose own address is not that of its machine.",
            next=f"Set {PUBLIC} to the address and port of the machine around it.",
        ))  # fmt: skip
    rooms = _rooms(around.interfaces)
    if address.source == "interface" and len(rooms) > 1:
        others = ", ".join(f"{each.address} ({each.name})" for each in rooms[1:])
        found.append(Objection(
            sure=False, words=f"This machine is in several networks; the code names {rooms[0].address} ({rooms[0].name}).",
            next=f"If phones are in another one ({others}), open this page by that address, or set {PUBLIC}.",
        ))  # fmt: skip
    if around.proxied and not around.public_url:
        found.append(Objection(
            sure=False, words="A proxy stands before the server; the address is the one you came by.",
            next=f"If phones come by another one, set {PUBLIC}.",
        ))  # fmt: skip
    return found


def _better(around: Surroundings) -> str:
    """How to come by an address that phones can open."""
    rooms = _rooms(around.interfaces)
    if _bound_locally(around) and not around.proxied:
        return ELSEWHERE
    if rooms and not around.in_container:
        open_as = _with_host(around.page_url, rooms[0].address)
        return f"Open this page as {open_as}/teach, or set {PUBLIC} to the address that phones have to open."
    return f"Join the room's network, or set {PUBLIC} to the address that phones have to open."


def _rooms(interfaces: Sequence[Interface]) -> list[Interface]:
    """Those that phones may be in; the old kind of address first, for it is short enough to be typed."""
    return sorted((each for each in interfaces if each.kind == "room"), key=lambda each: ":" in each.address)


def _bound_locally(around: Surroundings) -> bool:
    return bool(around.listens_on) and local_only(around.listens_on) and around.listens_on not in ("0.0.0.0", "::")


def _with_host(url: str, host: str) -> str:
    parts = urlsplit(url)
    name = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme or 'http'}://{name}{port}{parts.path.rstrip('/')}"


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
