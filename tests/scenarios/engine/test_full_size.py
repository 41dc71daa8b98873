"""What a rank trains on a real GPU, as far as it can be tried without one: shapes, gradients, serial numbers, decoding."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from scenarios.costs.models import MODELS
from scenarios.worker.checksums import checksum
from scenarios.worker.decoding import decode_rows, passes_for
from scenarios.worker.displayed import SERIAL_BYTES, Displayed, reader, row_form, serials_of
from scenarios.worker.full_size import FullSizeSamples, affordable_workers

META = torch.device("meta")


@pytest.mark.parametrize("name", ["resnet50", "bert_large", "gpt2_medium", "mlp"])
def test_every_displayed_model_trains_on_rows_with_a_script_s_loss(name: str) -> None:
    """On the meta device, where shapes are real and nothing is computed: every parameter gets a gradient."""
    form = row_form(name)
    network = Displayed(name, precision="fp32", device=META)
    rows = torch.empty(2, SERIAL_BYTES + form.bytes, dtype=torch.uint8, device=META)
    labels = torch.empty(2, *form.label_shape, dtype=torch.int64, device=META)
    logits = network(rows)
    assert (logits.shape[1], logits.dtype) == (form.classes, torch.float32)
    cross_entropy(logits, labels).backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize("name", ["resnet50", "bert_large", "bert_large_varied", "gpt2_medium", "mlp"])
def test_samples_fit_their_model_and_know_their_number(name: str) -> None:
    data = FullSizeSamples(name)
    rows, labels = next(iter(DataLoader(data, 3, sampler=[7, 1_000, 12])))
    form = row_form(name)
    assert serials_of(rows).tolist() == [7, 1_000, 12]
    assert (tuple(rows.shape), tuple(labels.shape)) == ((3, SERIAL_BYTES + form.bytes), (3, *form.label_shape))
    assert 0 <= int(labels.min()) <= int(labels.max()) < form.classes
    assert len(data) == MODELS[name].epoch_samples
    assert not torch.equal(rows[0, SERIAL_BYTES:], rows[1, SERIAL_BYTES:])


def test_sequences_of_many_lengths_are_read_as_ones_of_their_mean() -> None:
    read = reader("bert_large_varied")
    for serials, length in (([0, 1], 32), ([4_095, 4_095], 384), ([0, 4_095], 208)):
        rows, labels = next(iter(DataLoader(FullSizeSamples("bert_large_varied"), 2, sampler=serials)))
        words, kinds, mask = read(rows)
        assert (words.shape, kinds.shape, mask.shape) == ((2, length), (2, length), (2, 1, 1, length))
        assert int(labels.max()) < 32, "an answer lies within the shortest sequence"


def test_a_model_learns_at_the_scripts_learning_rate() -> None:
    torch.manual_seed(0)
    network = Displayed("mlp", precision="amp", device=torch.device("cpu"))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    rows, labels = next(iter(DataLoader(FullSizeSamples("mlp"), 4)))
    losses = []
    for _ in range(6):
        loss = cross_entropy(network(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] < 3


def test_decoding_changes_pictures_and_keeps_numbers_wherever_it_happens() -> None:
    coded, _ = next(iter(DataLoader(FullSizeSamples("resnet50"), 2)))
    decoded, _ = next(iter(DataLoader(FullSizeSamples("resnet50", decode=True), 2)))
    assert torch.equal(decode_rows(coded), decoded)
    assert torch.equal(serials_of(decoded), serials_of(coded))
    pixels = decoded[:, SERIAL_BYTES:].float()
    assert pixels.std() > 10, "a picture, not a flat field"
    assert torch.equal(decode_rows(coded, passes=2), decoded)


def test_decoding_is_repeated_until_it_takes_as_long_as_published_decoders() -> None:
    coded, _ = next(iter(DataLoader(FullSizeSamples("resnet50"), 2)))
    assert passes_for(coded, images_per_second=1e9) == 1
    assert passes_for(coded, images_per_second=1.0) > 5


@pytest.mark.parametrize(("free", "workers"), [(10**12, 8), (10 * 40, 5), (79, 0), (0, 0)])
def test_loader_processes_are_as_many_as_shared_memory_holds(free: int, workers: int) -> None:
    """A container's 64 MB would otherwise kill them."""
    assert affordable_workers(8, batch_bytes=40, free_bytes=free) == workers


def test_a_checksum_sees_any_one_bit_and_the_order_of_parameters() -> None:
    one, other = torch.zeros(5_000), torch.ones(3)
    before = checksum([one, other])
    assert before == checksum([one.clone(), other.clone()])
    changed = one.clone()
    changed[4_321] = -0.0
    assert len({before, checksum([changed, other]), checksum([other, one])}) == 3
