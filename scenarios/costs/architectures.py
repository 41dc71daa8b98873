"""The displayed models in plain torch.nn: walked on the meta device to be priced (`walk.py`), trained on real GPUs (`worker/displayed.py`).

Owns the architectures, nothing else. `logits` is the model, `forward` the model with its loss. Imports torch.

Sources: ResNet v1.5 (He et al. 2015, stride in the 3x3 convolution as in NVIDIA DeepLearningExamples), ResNeXt (Xie et al. 2017),
BERT-large (Devlin et al. 2018) and GPT-2 medium (Radford et al. 2019), attention written out with separate softmax and
dropout as in the scripts behind the published rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as fn

MLP_WIDTH = 128
MLP_BLOCKS = 270
MLP_WIDE_WIDTH = 4096
MLP_WIDE_BLOCKS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """How to build one model and one batch of it on the current default device."""

    build: Callable[[], nn.Module]
    """The module; called with a batch, it returns the scalar loss."""
    batch: Callable[[int, int], tuple[Tensor, ...]]
    """`batch(samples, seq_len)`; seq_len is ignored by models without sequences."""
    has_sequences: bool
    optimizer: str
    """sgd (momentum and weight decay, foreach) or adamw (fused)."""


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions with a shortcut."""

    def __init__(self, inputs: int, width: int, outputs: int, *, stride: int, groups: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, groups=groups, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        kept = x if self.shortcut is None else self.shortcut(x)
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y))
        y += kept
        out: Tensor = self.relu(y)
        return out


class ResNet(nn.Module):
    """ResNet and ResNeXt of bottleneck blocks, with the cross-entropy loss."""

    def __init__(self, depths: tuple[int, int, int, int], *, groups: int = 1, width_per_group: int = 64) -> None:
        super().__init__()
        stem = [nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
        self.stem = nn.Sequential(*stem, nn.MaxPool2d(3, stride=2, padding=1))
        blocks: list[nn.Module] = []
        inputs = 64
        for stage, depth in enumerate(depths):
            planes = 64 * 2**stage
            for index in range(depth):
                stride = 2 if index == 0 and stage > 0 else 1
                width = planes * width_per_group * groups // 64
                blocks.append(Bottleneck(inputs, width, planes * 4, stride=stride, groups=groups))
                inputs = planes * 4
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, 1000)

    def logits(self, images: Tensor) -> Tensor:
        features = fn.adaptive_avg_pool2d(self.blocks(self.stem(images)), 1)
        out: Tensor = self.head(torch.flatten(features, 1))
        return out

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return fn.cross_entropy(self.logits(images), labels)


class Attention(nn.Module):
    """Multi-head attention with query, key and value in separate projections."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def _split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        query, key, value = self._split(self.query(x)), self._split(self.key(x)), self._split(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / float((x.shape[-1] // self.heads) ** 0.5)
        scores = scores.masked_fill(mask, -10_000.0) if self.causal else scores + mask
        weights = fn.dropout(fn.softmax(scores, dim=-1), 0.1, training=True)
        mixed = torch.matmul(weights, value).transpose(1, 2).contiguous()
        out: Tensor = self.out(mixed.view(x.shape))
        return out


class TransformerBlock(nn.Module):
    """Attention and a four times wider feed-forward part; norm after the residual (BERT) or before (GPT-2)."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads, causal=causal)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.causal = causal

    def _feed(self, x: Tensor) -> Tensor:
        return fn.dropout(self.narrow(fn.gelu(self.wide(x))), 0.1, training=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if self.causal:
            x = x + fn.dropout(self.attention(self.norm1(x), mask), 0.1, training=True)
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + fn.dropout(self.attention(x, mask), 0.1, training=True))
        out: Tensor = self.norm2(x + self._feed(x))
        return out


class Bert(nn.Module):
    """BERT-large with the question-answering head, or with both pre-training heads on the masked positions."""

    def __init__(self, *, pretrain: bool) -> None:
        super().__init__()
        width, vocabulary = 1024, 30_528
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(TransformerBlock(width, 16, causal=False) for _ in range(24))
        self.pretrain = pretrain
        if pretrain:
            self.pooler, self.sentence = nn.Linear(width, width), nn.Linear(width, 2)
            self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width)
            self.decoder = nn.Linear(width, vocabulary)
            self.decoder.weight = self.words.weight
        else:
            self.span = nn.Linear(width, 2)

    def hidden(self, tokens: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """What the blocks make of the tokens."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.positions(positions) + self.kinds(kinds)
        x = fn.dropout(self.norm(x), 0.1, training=True)
        for block in self.blocks:
            x = block(x, mask)
        out: Tensor = x
        return out

    def logits(self, tokens: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """Of question answering: (samples, places, 2), where an answer starts and where it ends."""
        out: Tensor = self.span(self.hidden(tokens, kinds, mask))
        return out

    def forward(self, tokens: Tensor, kinds: Tensor, mask: Tensor, places: Tensor, labels: Tensor, pair: Tensor) -> Tensor:
        x = self.hidden(tokens, kinds, mask)
        if not self.pretrain:
            start, end = self.span(x).split(1, dim=-1)
            loss = fn.cross_entropy(start.squeeze(-1), pair[:, 0]) + fn.cross_entropy(end.squeeze(-1), pair[:, 1])
            return loss / 2
        chosen = torch.index_select(x.reshape(-1, x.shape[-1]), 0, places)
        words = self.decoder(self.transform_norm(fn.gelu(self.transform(chosen))))
        next_sentence = self.sentence(torch.tanh(self.pooler(x[:, 0])))
        return fn.cross_entropy(words, labels) + fn.cross_entropy(next_sentence, pair[:, 0])


class Gpt2(nn.Module):
    """GPT-2 medium with its language-model head tied to the word embedding."""

    def __init__(self) -> None:
        super().__init__()
        width, vocabulary = 1024, 50_257
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.blocks = nn.ModuleList(TransformerBlock(width, 16, causal=True) for _ in range(24))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.words.weight

    def logits(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """(samples, places, words): which word comes next."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = fn.dropout(self.words(tokens) + self.positions(positions), 0.1, training=True)
        for block in self.blocks:
            x = block(x, mask)
        out: Tensor = self.head(self.norm(x))
        return out

    def forward(self, tokens: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        logits = self.logits(tokens, mask)
        return fn.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


class Mlp(nn.Module):
    """Residual blocks of LayerNorm, Linear and GELU. Deep and narrow: thousands of kernels, none of which fills a GPU. Wide and shallow:
    few operations for each of its many gradients."""

    def __init__(self, *, width: int, blocks: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(blocks))
        self.linears = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.head = nn.Linear(width, 10)

    def logits(self, rows: Tensor) -> Tensor:
        x = self.inputs(rows)
        for norm, linear in zip(self.norms, self.linears, strict=True):
            x = x + fn.gelu(linear(norm(x)))
        out: Tensor = self.head(x)
        return out

    def forward(self, rows: Tensor, labels: Tensor) -> Tensor:
        return fn.cross_entropy(self.logits(rows), labels)


def _long(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.long)


def _image_batch(samples: int, seq_len: int) -> tuple[Tensor, ...]:
    return torch.empty(samples, 3, 224, 224), _long(samples)


def _bert_batch(samples: int, seq_len: int) -> tuple[Tensor, ...]:
    # 20 of 128 tokens are predicted in pre-training (max_predictions_per_seq of the published scripts).
    masked = samples * (seq_len * 5 // 32)
    mask = torch.empty(samples, 1, 1, seq_len)
    return _long(samples, seq_len), _long(samples, seq_len), mask, _long(masked), _long(masked), _long(samples, 2)


def _gpt2_batch(samples: int, seq_len: int) -> tuple[Tensor, ...]:
    return _long(samples, seq_len), _long(samples, seq_len), torch.zeros(1024, 1024, dtype=torch.bool)[:seq_len, :seq_len]


def _mlp_batch(samples: int, seq_len: int) -> tuple[Tensor, ...]:
    return torch.empty(samples, MLP_WIDTH), _long(samples)


def _mlp_wide_batch(samples: int, seq_len: int) -> tuple[Tensor, ...]:
    return torch.empty(samples, MLP_WIDE_WIDTH), _long(samples)


def _images(build: Callable[[], nn.Module]) -> Architecture:
    return Architecture(build=build, batch=_image_batch, has_sequences=False, optimizer="sgd")


ARCHITECTURES: dict[str, Architecture] = {
    "resnet50": _images(lambda: ResNet((3, 4, 6, 3))),
    "resnet101": _images(lambda: ResNet((3, 4, 23, 3))),
    "resnext101_32x8d": _images(lambda: ResNet((3, 4, 23, 3), groups=32, width_per_group=8)),
    "bert_large": Architecture(build=lambda: Bert(pretrain=False), batch=_bert_batch, has_sequences=True, optimizer="adamw"),
    "bert_large_pretrain": Architecture(build=lambda: Bert(pretrain=True), batch=_bert_batch, has_sequences=True, optimizer="adamw"),
    "gpt2_medium": Architecture(build=Gpt2, batch=_gpt2_batch, has_sequences=True, optimizer="adamw"),
    "mlp": Architecture(
        build=lambda: Mlp(width=MLP_WIDTH, blocks=MLP_BLOCKS), batch=_mlp_batch, has_sequences=False, optimizer="sgd",
    ),
    "mlp_wide": Architecture(
        build=lambda: Mlp(width=MLP_WIDE_WIDTH, blocks=MLP_WIDE_BLOCKS), batch=_mlp_wide_batch, has_sequences=False, optimizer="sgd",
    ),
}
"""By table name: bert_large's two published tasks are two walks."""
