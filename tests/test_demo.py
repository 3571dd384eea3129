"""The demonstration: it learns, it reports, its picture is sound."""

import struct
import zlib

import numpy as np
import pytest

import wengert as wg
from wengert.cli import main
from wengert.demo import digits, network, report, run


def test_in_full(capsys, tmp_path):
    picture = tmp_path / "mistakes.png"
    accuracy = run(epochs=30, picture=str(picture))
    assert accuracy >= 0.97
    shown = capsys.readouterr().out
    assert f"Test accuracy: {100 * accuracy:.1f} %" in shown
    assert "Digits (rows) and what they were taken for" in shown
    assert str(picture) in shown.replace("\n", "")
    assert pixels(picture.read_bytes()).shape[0] > 64


def test_as_a_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--eager", "--epochs", "2", "--picture", str(tmp_path / "few.png")]) == 0
    first = capsys.readouterr().out
    assert main(["demo", "--epochs", "2", "--picture", str(tmp_path / "few.png")]) == 0
    assert capsys.readouterr().out == first  # the same seed, the same digits
    (tmp_path / "few.png").unlink()
    assert main(["demo", "--jit", "--epochs", "2"]) == 0
    shown = capsys.readouterr().out
    assert "Test accuracy: 9" in shown
    assert "--picture PATH draws the" in shown
    assert not list(tmp_path.iterdir())  # nobody asked for a file


def test_digits():
    train, test = digits.load()
    assert (len(train.labels), len(test.labels)) == (1437, 360)
    images = np.concatenate([train.images, test.images])
    assert images.min() == 0
    assert images.max() == 1
    assert np.bincount(np.concatenate([train.labels, test.labels])).tolist() == [
        178, 182, 177, 183, 181, 182, 181, 179, 174, 180,
    ]  # fmt: skip


def test_the_licence_travels_with_the_digits():
    text = digits.files("wengert.demo").joinpath("data", "LICENSE.txt").read_text()
    assert "Alpaydin" in text
    assert "10.24432/C50P49" in text
    assert "CC BY 4.0" in text


def test_micro_batches_add_up_to_the_batch():
    train, _ = digits.load()
    images, labels = train.images[:32], train.labels[:32]
    net = network.Network(np.random.default_rng(0))
    network.cross_entropy(net(images), labels).backward()
    whole = [parameter.grad.numpy().copy() for parameter in net.parameters]
    for parameter in net.parameters:
        parameter.grad = None
    for start in (0, 16):
        network.cross_entropy(net(images[start : start + 16]), labels[start : start + 16]).backward()
    for parameter, gradient in zip(net.parameters, whole, strict=True):
        np.testing.assert_allclose(parameter.grad.numpy(), gradient, rtol=1e-10, atol=1e-12)


def test_cross_entropy_is_that_of_the_softmax():
    scores = np.array([[1.0, 2.0, 3.0], [1000.0, 0.0, 0.0]])
    softmax = np.exp(scores - scores.max(1, keepdims=True))
    softmax /= softmax.sum(1, keepdims=True)
    labels = np.array([0, 0])
    x = wg.tensor(scores, requires_grad=True)
    loss = network.cross_entropy(x, labels)
    loss.backward()
    assert loss.item() == pytest.approx(-np.log(softmax[[0, 1], labels]).sum())
    np.testing.assert_allclose(x.grad.numpy(), softmax - np.eye(3)[labels], atol=1e-15)


def test_adam_moves_by_its_rate_at_first():
    x = wg.tensor([1.0, -1.0], requires_grad=True)
    optimizer = network.Adam([x], rate=0.1)
    (x * [3.0, -0.5]).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(x.detach().numpy(), [0.9, -0.9], rtol=1e-6)
    assert x.grad is None
    assert x.requires_grad
    assert x.is_leaf


def test_training_lowers_the_loss():
    random = np.random.default_rng(0)
    train, _ = digits.load()
    few = digits.Digits(train.images[:200], train.labels[:200])
    losses = list(network.epoch_losses(network.Network(random), few, 15, random))
    assert losses[-1] < losses[0] / 2


def test_confusion_table():
    counts = report.confusion(np.array([3, 3, 8]), np.array([3, 5, 8]))
    assert counts.sum() == 3
    assert counts[3, 5] == 1
    assert report.confusion_table(counts).row_count == 10


def test_picture():
    data, _ = digits.load()
    n = 7
    picture = pixels(report.mistakes_picture(data.images[:n], data.labels[:n], (data.labels[:n] + 1) % 10))
    assert picture.min() == report.INK
    assert picture[0, 0] == report.PAPER


def pixels(content):
    """The pixels of a grey PNG picture, read with its checks."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, position = {}, 8
    while position < len(content):
        (size,) = struct.unpack(">I", content[position : position + 4])
        kind, data = content[position + 4 : position + 8], content[position + 8 : position + 8 + size]
        (check,) = struct.unpack(">I", content[position + 8 + size : position + 12 + size])
        assert check == zlib.crc32(kind + data)
        chunks[kind], position = data, position + 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 0, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]
