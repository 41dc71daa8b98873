"""Collectives obey what any link obeys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS, NETWORKS
from scenarios.costs.pricing import all_reduce_ns, link_of

_BYTES = st.integers(0, 4 * 10**9)
_LINKS = st.sampled_from(sorted(LINKS))
_SLOWER_FIRST = st.sampled_from(
    [
        ("nvlink2", "nvlink3"), ("nvlink3", "nvlink4"), ("nvlink4", "nvlink5"), ("pcie3", "pcie4"), ("pcie4", "pcie5"),
        ("pcie5", "nvlink2"),
        *((f"pcie{generation}-host", f"pcie{generation}") for generation in (3, 4, 5)),
    ]
)
_NETWORKS_SLOWER_FIRST = st.sampled_from(
    [("eth-100", "hdr-200"), ("hdr-200", "edr-100x4"), ("hdr-200", "hdr-200x8"), ("hdr-200x8", "ndr-400x8")]
)


def _ns(nbytes: int, world: int, link: str) -> int:
    return all_reduce_ns(nbytes, gpu="h100-80gb", world=world, link=link)


@given(nbytes=_BYTES, more=_BYTES, world=st.integers(1, 64), link=_LINKS)
def test_more_bytes_never_shorten_a_collective(nbytes: int, more: int, world: int, link: str) -> None:
    assert _ns(nbytes + more, world, link) >= _ns(nbytes, world, link)


@given(nbytes=_BYTES, world=st.integers(1, 63), link=_LINKS)
def test_another_rank_never_shortens_a_collective(nbytes: int, world: int, link: str) -> None:
    assert _ns(nbytes, world + 1, link) >= _ns(nbytes, world, link)


@given(nbytes=_BYTES, world=st.integers(2, 64), links=_SLOWER_FIRST)
def test_a_slower_link_never_shortens_a_collective(nbytes: int, world: int, links: tuple[str, str]) -> None:
    slow, fast = (_ns(nbytes, world, link) for link in links)
    assert slow >= fast


@given(nbytes=_BYTES, nodes=st.integers(1, 16), ranks=st.integers(1, 8), networks=_NETWORKS_SLOWER_FIRST)
def test_another_node_or_a_slower_network_never_shortens_a_collective(
    nbytes: int, nodes: int, ranks: int, networks: tuple[str, str]
) -> None:
    def ns(network: str, count: int) -> int:
        return all_reduce_ns(nbytes, gpu="a100-80gb", world=ranks * count, nodes=count, network=network)

    slow, fast = networks
    assert ns(slow, nodes) >= ns(fast, nodes)
    assert ns(slow, nodes + 1) >= ns(slow, nodes)


def test_switches_add_up_large_messages_of_many_gpus_only() -> None:
    def bus_gb_s(nbytes: int, world: int) -> float:
        return nbytes * 2 * (world - 1) / world / _ns(nbytes, world, "nvlink4")

    assert bus_gb_s(4 * 10**9, 8) == pytest.approx(480, rel=0.01)
    assert bus_gb_s(4 * 10**9, 2) == pytest.approx(370, rel=0.01)
    small = 10_000
    assert _ns(small, 4, "nvlink4") == pytest.approx(6_000 + 6 * 4_000 + 1.5 * small / 370, abs=2)


def test_a_network_carries_the_bytes_of_a_node_once() -> None:
    inside = all_reduce_ns(10**9, gpu="a100-80gb", world=8)
    across = all_reduce_ns(10**9, gpu="a100-80gb", world=16, nodes=2, network="hdr-200x8")
    assert across - inside == pytest.approx(1e9 / 182, rel=0.01)


def test_every_figure_has_a_source() -> None:
    for link in (*LINKS.values(), *NETWORKS.values()):
        assert len(link.source) > 20, link.name
    for gpu in GPUS.values():
        assert "" not in (gpu.source, gpu.decode_source), gpu.name
        assert link_of(gpu.name).kind in ("nvlink", "pcie")
