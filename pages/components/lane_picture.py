"""A recorded run as eight small lanes, a still picture for a printed page.

Owns the drawing. Fill means kind, as in the live lanes: outline is busy as nvidia-smi counts, solid is useful work, hatched is busy but
waiting. So it works in black and white; the role's colour only adds to it. It is an image of its own, since Streamlit takes SVG out of
HTML; so its colours are ones that can be seen on light and dark paper alike.
"""

from __future__ import annotations

from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scenarios.catalog import Metric
from scenarios.telemetry import Sample

STYLE = (
    ".f{stroke:#8A8F98;stroke-width:.5}.b{fill:none;stroke:#7A828E;stroke-width:1}.u{fill:#6F8AA3}.h{fill:url(#h)}.s{stroke:#6F8AA3}"
    ".o .u{fill:#D0602A}.o .h{fill:url(#i)}.r{stroke:#D0602A}text{font:8px 'Source Sans 3',Arial,sans-serif;fill:#7A828E;text-anchor:end}"
    ".o text{font-weight:700}"
)
_HATCH = (
    '<pattern id="{id}" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="{role}" d="M1 0V4" stroke-width="1.4"/></pattern>'
)
WIDTH, LEFT, LANE, GAP = 360.0, 13.0, 9.0, 2.0
"""Units of the view box: its width, the room for the GPUs' numbers, the height of a lane, and the gap under it."""
TALL, APART = 15.0, 4.0
"""The odd lane is taller and set off."""
ROOM = 0.6
"""Memory is drawn against the card's limit where it comes this near to it, else against its own peak, so that a difference is seen."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """What is drawn of each sample, in shares of a lane's height."""

    outline: Callable[[Sample], float | None]
    solid: Callable[[Sample], float | None]
    hatched: Callable[[Sample], tuple[float, float] | None]
    caption: str


def drawn(samples: Iterable[Sample], metric: Metric, *, memory_limit_gib: float | None = None) -> Drawn:
    """How a metric is drawn, and what the picture is called."""
    kept = list(samples)
    if metric == "memory":
        peak = max((sample.memory_gib for sample in kept if sample.memory_gib is not None), default=1.0)
        near = memory_limit_gib is not None and peak >= ROOM * memory_limit_gib
        top = memory_limit_gib if near and memory_limit_gib else peak * 1.05
        caption = f"memory, against the card's {top:.0f} GiB" if near else f"memory, up to {peak:.1f} GiB"
        return Drawn(outline=_share("memory_gib", top), solid=_share("memory_gib", top), hatched=_nothing, caption=caption)
    if metric == "apart":
        top = max((sample.weights_apart or 0.0 for sample in kept), default=0.0) or 1.0
        share = _share("weights_apart", top)
        return Drawn(outline=share, solid=share, hatched=_nothing, caption="distance of the weights from rank 0's")
    return Drawn(
        outline=_share("gpu_util", 100.0), solid=_share("sm_active", 100.0), hatched=_waiting, caption="busy, useful work and waiting"
    )


def lanes_image(samples: Iterable[Sample], *, odd_rank: int | None, alt: str, how: Drawn) -> str:
    """An <img> of `lanes_svg`; `alt` is plain text that was escaped."""
    data = b64encode(lanes_svg(samples, odd_rank=odd_rank, how=how).encode()).decode()
    return f'<img class="pg-lanes" alt="{alt}" src="data:image/svg+xml;base64,{data}">'


def lanes_svg(samples: Iterable[Sample], *, odd_rank: int | None, how: Drawn) -> str:
    """One lane per GPU over the run; a missing value leaves a gap."""
    by_rank: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_rank[sample.rank].append(sample)
    end_ns = max((sample.end_ns for lane in by_rank.values() for sample in lane), default=1)
    top, lanes = 0.0, []
    for rank, lane in sorted(by_rank.items()):
        odd = rank == odd_rank
        height = TALL if odd else LANE
        top += APART if odd and rank else 0.0
        lanes.append(_lane(lane, rank, top + height, height, end_ns, odd=odd, how=how))
        top += height + (APART if odd else GAP)
    size = f'width="{WIDTH:g}" height="{top:g}" viewBox="0 0 {WIDTH:g} {top:g}"'
    patterns = _HATCH.format(id="h", role="s") + _HATCH.format(id="i", role="r")
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style><defs>{patterns}</defs>{"".join(lanes)}</svg>'


def _lane(lane: list[Sample], rank: int, base: float, height: float, end_ns: int, *, odd: bool, how: Drawn) -> str:
    solid, hatched, outline = "", "", ""
    start_ns = 0
    for sample in lane:
        left, right = (LEFT + (WIDTH - LEFT) * at_ns / end_ns for at_ns in (start_ns, sample.end_ns))
        if (value := how.solid(sample)) is not None:
            solid += f"M{left:.1f} {base:g}V{base - height * value:.1f}H{right:.1f}V{base:g}Z"
        if (band := how.hatched(sample)) is not None:
            low, high = (base - height * value for value in band)
            hatched += f"M{left:.1f} {low:.1f}V{high:.1f}H{right:.1f}V{low:.1f}Z"
        if (value := how.outline(sample)) is not None:
            outline += f"M{left:.1f} {base - height * value:.1f}H{right:.1f}"
        start_ns = sample.end_ns
    role = ' class="o"' if odd else ""
    return (
        f'<g{role}><text x="{LEFT - 4:g}" y="{base - 1:g}">{rank}</text><path class="f" d="M{LEFT:g} {base:g}H{WIDTH:g}"/>'
        f'<path class="u" d="{solid}"/><path class="h" d="{hatched}"/><path class="b" d="{outline}"/></g>'
    )


def _share(name: str, top: float) -> Callable[[Sample], float | None]:
    def of(sample: Sample) -> float | None:
        value = getattr(sample, name)
        return None if value is None else min(1.0, float(value) / top)

    return of


def _waiting(sample: Sample) -> tuple[float, float] | None:
    """From where to where a lane is hatched: the part of busy in which a kernel only waited."""
    if not sample.spin_pct or sample.gpu_util is None:
        return None
    return max(0.0, sample.gpu_util - sample.spin_pct) / 100.0, sample.gpu_util / 100.0


def _nothing(_: Sample) -> None:
    return None
