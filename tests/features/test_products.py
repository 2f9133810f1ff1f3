"""Products by oneDNN are those of torch's own layers, with their gradients, whatever the shapes."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from agcd.features import products
from agcd.features.products import Linear, linear, product, with_our_products

SIZES = st.integers(1, 40)


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@given(n=SIZES, d=SIZES, o=SIZES, middle=st.sampled_from([(), (3,)]), biased=st.booleans())
@settings(deadline=None, max_examples=60)
def test_a_linear_layer_and_its_gradients_are_torchs(n: int, d: int, o: int, middle: tuple[int], biased: bool) -> None:
    x, weight = numbers(n, *middle, d).requires_grad_(), numbers(o, d).requires_grad_()
    bias = numbers(o).requires_grad_() if biased else None
    wanted = [tensor for tensor in (x, weight, bias) if tensor is not None]
    grad, found = numbers(n, *middle, o), []
    for layer in (linear, F.linear):
        y = layer(x, weight, bias)
        found.append([y.detach(), *torch.autograd.grad(y, wanted, grad)])
    for ours, torchs in zip(*found, strict=True):
        torch.testing.assert_close(ours, torchs, rtol=1e-4, atol=1e-4)


@given(n=SIZES, d=SIZES, o=SIZES)
@settings(deadline=None, max_examples=30)
def test_a_product_takes_transposed_views(n: int, d: int, o: int) -> None:
    a, b = numbers(n, d), numbers(o, d)
    for left in (a, a.t().contiguous().t()):
        for right in (b, b.t().contiguous().t()):
            torch.testing.assert_close(product(left, right), a @ b.t(), rtol=1e-4, atol=1e-4)


def test_what_needs_no_gradient_gets_none() -> None:
    x, weight = numbers(4, 3), numbers(2, 3).requires_grad_()
    linear(x, weight).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is None
    assert weight.grad is not None


@pytest.mark.parametrize("shape", [(0, 3), (3,)])
def test_empty_batches_and_single_vectors_are_torchs(shape: tuple[int, ...]) -> None:
    x, weight = numbers(*shape), numbers(2, 3)
    torch.testing.assert_close(linear(x, weight), F.linear(x, weight))


def test_autocast_and_double_precision_stay_what_they_are() -> None:
    x, weight = numbers(4, 3), numbers(2, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
    assert linear(x.double(), weight.double()).dtype == torch.float64


def test_layers_of_a_network_keep_their_names_weights_and_outputs() -> None:
    network = nn.Sequential(nn.Linear(5, 4), nn.GELU(), nn.Sequential(nn.Linear(4, 3, bias=False)))
    ours = with_our_products(deepcopy(network))
    assert [type(layer) for layer in ours.modules() if isinstance(layer, nn.Linear)] == [Linear, Linear]
    assert ours.state_dict().keys() == network.state_dict().keys()
    torch.testing.assert_close(ours(numbers(6, 5)), network(numbers(6, 5)))


def test_a_build_of_torch_without_the_operator_computes_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_HAS_ONE_DNN", False)
    x, weight, bias = numbers(4, 3), numbers(2, 3), numbers(2)
    assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))
    assert torch.equal(product(x, weight), x @ weight.t())


def test_this_build_of_torch_has_the_operator() -> None:
    """Else the tests above compare torch with itself, and training takes twice the time on some processors."""
    assert products._HAS_ONE_DNN
