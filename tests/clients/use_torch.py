"""Runs a convolution, a linear layer and attention on oneDNN Graph. Prints the outputs' hash."""

import hashlib

import torch


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.linear = torch.nn.Linear(16 * 8 * 8, 64)
        self.causal = torch.ones(16, 16, dtype=torch.bool).tril()
        self.low = torch.tensor(-1e9)

    def forward(
        self, image: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        features = torch.relu(self.convolution(image)).flatten(1)
        scores = torch.matmul(q, k.transpose(-2, -1)) / 8.0
        other = torch.matmul(k, q.transpose(-2, -1)) / 8.0
        masked = torch.where(self.causal, other, self.low)
        plain = torch.matmul(torch.softmax(scores + q[..., :1, :16], -1), v)
        return (
            torch.sigmoid(self.linear(features)),
            plain * plain + q,
            torch.matmul(torch.softmax(masked, -1), v),
        )


torch.manual_seed(1)
torch.jit.enable_onednn_fusion(True)
inputs = (torch.randn(2, 3, 8, 8), *(torch.randn(2, 4, 16, 64) for _ in range(3)))
with torch.no_grad():
    network = torch.jit.freeze(torch.jit.trace(Network().eval(), inputs))
    for _ in range(3):  # the first calls profile, the last call runs compiled code
        outputs = network(*inputs)
print("outputs", hashlib.sha256(b"".join(o.numpy().tobytes() for o in outputs)).hexdigest())
