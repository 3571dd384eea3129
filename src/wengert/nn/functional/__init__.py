"""Layers of networks as functions, with PyTorch's names and arguments: `wengert.nn.functional`.

Images are (batch, channels, ...) and may come without the batch. What is drawn takes a key of `wengert.random`.

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

from wengert.nn.functional._activations import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
)
from wengert.nn.functional._attention import embedding, one_hot, scaled_dot_product_attention
from wengert.nn.functional._convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from wengert.nn.functional._losses import cross_entropy, mse_loss, nll_loss
from wengert.nn.functional._normalisation import batch_norm, dropout, layer_norm
from wengert.nn.functional._pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from wengert.nn.functional._sampling import grid_sample, interpolate, upsample

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "grid_sample",
    "interpolate",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mse_loss",
    "nll_loss",
    "one_hot",
    "relu",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "upsample",
]
