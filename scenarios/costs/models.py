"""The displayed models: what one sample is, how many an epoch has, and what it weighs before and after decoding.

Owns data facts only; kernels and memory come from `tables/`. Must not import torch.
"""

from __future__ import annotations

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
    seq_len: int | None = None
    """Tokens per sequence; None for models without sequences."""


# ImageNet-1k: 1,281,167 training images in 138 GiB of JPEG files, that is about 110 kB each; decoded and cropped to 224 x 224 x 3 bytes.
_JPEG_BYTES = 110_000
_RGB_BYTES = 224 * 224 * 3
_TOKEN_BYTES = 8  # torch.int64

MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            name="resnet50", label="ResNet-50", unit="images", epoch_samples=53_248, batch=256,
            encoded_bytes_per_sample=_JPEG_BYTES, decoded_bytes_per_sample=_RGB_BYTES, decodes=True,
        ),
        Model(
            name="resnet101", label="ResNet-101", unit="images", epoch_samples=36_864, batch=256,
            encoded_bytes_per_sample=_JPEG_BYTES, decoded_bytes_per_sample=_RGB_BYTES, decodes=True,
        ),
        Model(
            name="resnext101_32x8d", label="ResNeXt-101 32x8d", unit="images", epoch_samples=16_384, batch=128,
            encoded_bytes_per_sample=_JPEG_BYTES, decoded_bytes_per_sample=_RGB_BYTES, decodes=True,
        ),
        Model(
            name="bert_large", label="BERT-large", unit="sequences", epoch_samples=4_096, batch=32, seq_len=384,
            # input_ids, token_type_ids and attention_mask
            encoded_bytes_per_sample=3 * 384 * _TOKEN_BYTES, decoded_bytes_per_sample=3 * 384 * _TOKEN_BYTES, decodes=False,
        ),
        Model(
            name="gpt2_medium", label="GPT-2 medium", unit="sequences", epoch_samples=1_024, batch=8, seq_len=1024,
            encoded_bytes_per_sample=1024 * _TOKEN_BYTES, decoded_bytes_per_sample=1024 * _TOKEN_BYTES, decodes=False,
        ),
        Model(
            name="mlp", label="Deep narrow MLP", unit="rows", epoch_samples=184_320, batch=256,
            encoded_bytes_per_sample=128 * 4, decoded_bytes_per_sample=128 * 4, decodes=False,
        ),
        Model(
            name="mlp_wide", label="Wide shallow MLP", unit="rows", epoch_samples=184_320, batch=256,
            encoded_bytes_per_sample=4096 * 4, decoded_bytes_per_sample=4096 * 4, decodes=False,
        ),
    )
}
