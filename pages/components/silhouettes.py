"""The five silhouettes of eight GPUs as small SVG pictures: what a learner predicts, and what a table shows of a run.

Owns their drawing. Must not decide which of them a run drew.
"""

from __future__ import annotations

from lessons.model import SILHOUETTES, Silhouette

GPUS = 8
WIDTH, HEIGHT = 96, 62
"""Units of the view box; a silhouette keeps this shape at every size."""

LEVELS: dict[Silhouette, tuple[float, float]] = {
    "only0": (0.97, 0.11), "all_high": (0.94, 0.94), "all_low": (0.24, 0.24), "all_crash": (0.92, 0.92), "low0": (0.14, 0.92),
}  # fmt: skip
"""How busy GPU 0 and each of the others is, from 0 to 1: the same levels as those of the dashed outline behind the lanes."""

_TALL = 15.0
_GAP = 4.0
_RAMP_STEPS = 4


def silhouette_svg(name: Silhouette, *, decorative: bool = False) -> str:
    """The picture `name` as `<svg class="sl-sil">` with a title; `decorative` hides it from screen readers where words stand beside it."""
    odd = LEVELS[name][0] != LEVELS[name][1]
    lanes = "".join(_lane(name, rank, *place, odd=odd) for rank, place in enumerate(_places(odd)))
    spoken = 'aria-hidden="true"' if decorative else 'role="img"'
    title = "" if decorative else f"<title>{capital(SILHOUETTES[name])}</title>"
    return f'<svg class="sl-sil" viewBox="0 0 {WIDTH} {HEIGHT}" {spoken} focusable="false">{title}{lanes}</svg>'


def capital(text: str) -> str:
    """`text` with a capital first letter and the rest as it is."""
    return text[:1].upper() + text[1:]


def _places(odd: bool) -> list[tuple[float, float]]:
    """(top, height) of the eight lanes; the odd one is taller and set off, as in the live picture."""
    if not odd:
        pitch = HEIGHT / GPUS
        return [(rank * pitch, pitch - 1.6) for rank in range(GPUS)]
    pitch = (HEIGHT - _TALL - _GAP) / (GPUS - 1)
    return [(0.0, _TALL), *((_TALL + _GAP + rank * pitch, pitch - 1.4) for rank in range(GPUS - 1))]


def _lane(name: Silhouette, rank: int, top: float, height: float, *, odd: bool) -> str:
    level = LEVELS[name][0 if rank == 0 else 1]
    role = "sl-sil-odd" if odd and rank == 0 else "sl-sil-rest"
    base = top + height
    bed = f'<rect class="sl-sil-bed" y="{top:.1f}" width="{WIDTH}" height="{height:.1f}"/>'
    if name == "all_crash":
        return f'{bed}<path class="{role}" d="{_ramp(base, height * level)}"/><path class="sl-sil-end" d="{_cross(top + height / 2)}"/>'
    filled = max(1.1, height * level)
    return f'{bed}<rect class="{role}" y="{base - filled:.1f}" width="{WIDTH}" height="{filled:.1f}"/>'


def _ramp(base: float, height: float) -> str:
    """Memory that doubles until the lane ends, at a little over half of the width."""
    step = 0.56 * WIDTH / _RAMP_STEPS
    rises = "".join(f"V{base - height / 2 ** (_RAMP_STEPS - 1 - number):.1f}h{step:.1f}" for number in range(_RAMP_STEPS))
    return f"M0 {base:.1f}{rises}V{base:.1f}z"


def _cross(middle: float) -> str:
    x = 0.56 * WIDTH + 7
    return f"M{x - 2.6:.1f} {middle - 2.6:.1f}l5.2 5.2m0 -5.2l-5.2 5.2"
