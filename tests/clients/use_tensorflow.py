"""Runs a convolution, a dense layer and attention on oneDNN Graph. Prints the outputs' hash."""

import hashlib

import numpy as np
import tensorflow as tf

generator = np.random.default_rng(1)


def random(*dims: int) -> np.ndarray:
    return generator.standard_normal(dims, dtype=np.float32)


filters, bias, weights = random(3, 3, 4, 16), random(16), random(16 * 8 * 8, 64)
inputs = [tf.constant(random(2, 8, 8, 4)), *(tf.constant(random(2, 4, 16, 64)) for _ in range(3))]


@tf.function
def network(image: tf.Tensor, q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) -> tuple[tf.Tensor, ...]:
    features = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(image, filters, 1, "SAME"), bias))
    scores = tf.matmul(q, k, transpose_b=True) * 0.125
    other = tf.matmul(k, q, transpose_b=True) * 0.125
    masked = tf.where(np.tri(16, dtype=bool), other, -1e9)
    plain = tf.matmul(tf.nn.softmax(scores + q[..., :1, :16]), v)
    return (
        tf.sigmoid(tf.matmul(tf.reshape(features, (2, -1)), weights)),
        plain * plain + q,
        tf.matmul(tf.nn.softmax(masked), v),
    )


for _ in range(3):
    outputs = network(*inputs)
print("outputs", hashlib.sha256(b"".join(o.numpy().tobytes() for o in outputs)).hexdigest())
