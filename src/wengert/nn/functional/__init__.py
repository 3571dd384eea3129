"""Layers of networks as functions, with PyTorch's names and arguments: `wengert.nn.functional`.

Axes are named as in NumPy: `axis` and `keepdims` for `dim` and `keepdim`. Images are (batch, channels, ...) and may
come without the batch. What is drawn takes a key of `wengert.random`.

>>> import numpy as np
>>> import wengert as wg
>>> from wengert.nn import functional
>>> image, kernels = np.arange(16.0).reshape(1, 1, 4, 4), np.ones((1, 1, 2, 2))
>>> functional.conv2d(image, kernels, stride=2)
tensor([[[[10., 18.],
          [42., 50.]]]])
>>> wg.grad(lambda w: np.sum(functional.conv2d(image, w)))(kernels)
array([[[[45., 54.],
         [81., 90.]]]])
"""

from typing import TYPE_CHECKING

from wengert.nn.functional._activations import (
    elu,
    gelu,
    glu,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
    tanh,
)
from wengert.nn.functional._losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from wengert.nn.functional._normalisation import batch_norm, dropout, group_norm, layer_norm, rms_norm
from wengert.nn.functional._sampling import grid_sample, interpolate, upsample
from wengert.nn.functional._vectors import (
    cosine_similarity,
    embedding,
    linear,
    normalize,
    one_hot,
    pairwise_distance,
    scaled_dot_product_attention,
)
from wengert.nn.functional._windows import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from wengert.support.hints import names_on_demand

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "hardtanh",
    "huber_loss",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pairwise_distance",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "softsign",
    "tanh",
    "upsample",
]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.nn.functional")
