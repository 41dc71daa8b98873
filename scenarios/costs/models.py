"""The displayed models: what one sample is, how many an epoch has, and what it weighs before and after decoding.

Owns data facts only; kernels and memory come from `tables/`. Must not import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """One displayed model and its data set."""

    name: str
    """Key in MODELS and value of --model."""
    label: str
    unit: str
    """Plural name of a sample: images, sequences or rows."""
    epoch_samples: int
    """Samples in one epoch over all ranks: a slice of the real data set, so that an epoch can be watched."""
    batch: int
    """A batch per GPU that makes sense on the default card in mixed precision."""
    encoded_bytes_per_sample: int
    decoded_bytes_per_sample: int
    decodes: bool
    """True when samples are decoded and augmented before training (JPEG images)."""
    outputs_per_sample: int
    """Numbers that a forward pass returns for one sample: classes, where an answer starts and ends, or a vocabulary for each token."""
    seq_len: int | None = None
    """Tokens per sequence; None for models without sequences. Where lengths vary, of a mean batch."""
    lengths: tuple[int, int] | None = None
    """Tokens of the shortest and the longest sequence, where lengths vary; None where all have `seq_len`."""
    like: str = ""
    """The model whose kernels it has; empty is its own."""

    @property
    def table(self) -> str:
        return self.like or self.name

    def length(self, serial: int) -> int:
        """Tokens of the sample with this serial number, where lengths vary. The data set lies in the order of length.

        Most are short and few are long, as in text; the square of a sample's place is our assumption.
        """
        assert self.lengths is not None
        shortest, longest = self.lengths
        return round(shortest + (longest - shortest) * (serial / max(1, self.epoch_samples - 1)) ** 2)

    def batch_length(self, serials: Sequence[int]) -> int | None:
        """Tokens per sequence that a batch of these samples costs: their mean, rounded up to TILE; None where lengths do not vary.

        Sequences are packed without padding, as attention kernels for varying lengths allow: the work follows the number of tokens. A
        batch is taken to cost what one of equal sequences with as many tokens does, our assumption: longer ones would cost more than
        shorter ones save, where attention grows with the square of the length.
        """
        if self.lengths is None or not serials:
            return None
        mean = sum(map(self.length, serials)) / len(serials)
        return min(self.lengths[1], -(-round(mean) // TILE) * TILE)

    @property
    def batch_lengths(self) -> tuple[int | None, ...]:
        """All that `batch_length` can be."""
        if self.lengths is None:
            return (None,)
        return tuple(range(-(-self.lengths[0] // TILE) * TILE, self.lengths[1] + 1, TILE))

    @property
    def held_out_samples(self) -> int:
        """For validation. ImageNet-1k has 50,000 images for it, 1 to 26 of training; the same share for every model is our assumption."""
        return max(1, self.epoch_samples // 26)


TILE = 16
"""Tokens by which a matrix product is cut: tensor cores multiply tiles of 16 x 16."""

# ImageNet-1k: 1,281,167 training images in 138 GiB of JPEG files, that is about 110 kB each; decoded and cropped to 224 x 224 x 3 bytes.
_JPEG_BYTES = 110_000
_RGB_BYTES = 224 * 224 * 3
_TOKEN_BYTES = 8  # torch.int64

MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            name="resnet50", label="ResNet-50", unit="images", epoch_samples=53_248, batch=256,
            encoded_bytes_per_sample=_JPEG_BYTES, decoded_bytes_per_sample=_RGB_BYTES, decodes=True, outputs_per_sample=1000,
        ),
        Model(
            name="resnet101", label="ResNet-101", unit="images", epoch_samples=36_864, batch=256,
            encoded_bytes_per_sample=_JPEG_BYTES, decoded_bytes_per_sample=_RGB_BYTES, decodes=True, outputs_per_sample=1000,
        ),
        Model(
            name="resnext101_32x8d", label="ResNeXt-101 32x8d", unit="images", epoch_samples=16_384, batch=128,
            encoded_bytes_per_sample=_JPEG_BYTES, decoded_bytes_per_sample=_RGB_BYTES, decodes=True, outputs_per_sample=1000,
        ),
        Model(
            name="bert_large", label="BERT-large", unit="sequences", epoch_samples=4_096, batch=32, seq_len=384,
            # input_ids, token_type_ids and attention_mask
            encoded_bytes_per_sample=3 * 384 * _TOKEN_BYTES, decoded_bytes_per_sample=3 * 384 * _TOKEN_BYTES, decodes=False,
            outputs_per_sample=2 * 384,
        ),
        Model(
            # As bert_large, on sequences of 32 to 384 tokens with 149 on average, which tiles make 160.
            name="bert_large_varied", label="BERT-large, lengths vary", unit="sequences", epoch_samples=4_096, batch=32, seq_len=160,
            encoded_bytes_per_sample=3 * 160 * _TOKEN_BYTES, decoded_bytes_per_sample=3 * 160 * _TOKEN_BYTES, decodes=False,
            outputs_per_sample=2 * 160,
            lengths=(32, 384), like="bert_large",
        ),
        Model(
            name="gpt2_medium", label="GPT-2 medium", unit="sequences", epoch_samples=1_024, batch=8, seq_len=1024,
            encoded_bytes_per_sample=1024 * _TOKEN_BYTES, decoded_bytes_per_sample=1024 * _TOKEN_BYTES, decodes=False,
            outputs_per_sample=1024 * 50_257,
        ),
        Model(
            name="mlp", label="Deep narrow MLP", unit="rows", epoch_samples=184_320, batch=256,
            encoded_bytes_per_sample=128 * 4, decoded_bytes_per_sample=128 * 4, decodes=False, outputs_per_sample=10,
        ),
        Model(
            name="mlp_wide", label="Wide shallow MLP", unit="rows", epoch_samples=184_320, batch=256,
            encoded_bytes_per_sample=4096 * 4, decoded_bytes_per_sample=4096 * 4, decodes=False, outputs_per_sample=10,
        ),
    )
}
