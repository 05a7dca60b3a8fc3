from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskwise._call import AttentionCall

dialects: dict[str, int]

@overload
def where(condition: ArrayLike, /) -> tuple[NDArray[Any], ...]: ...
@overload
def where(
    condition: Any, x: Any, y: Any, /, *, out: NDArray[Any] | None = None
) -> NDArray[Any]: ...
@overload
def where(condition: Any, x: Any, y: Any, /, *, out: Any = None) -> Any: ...
def numpy_where(condition: Any, x: Any, y: Any, /) -> Any: ...
def explain(condition: Any, x: Any, y: Any, /) -> str: ...
def select(
    cond: NDArray[Any], src_0: NDArray[Any], src_1: NDArray[Any], broadcasts: bool, dialect: int, /
) -> NDArray[Any]: ...
def attention(
    call: AttentionCall,
    operands: tuple[Any, ...],
    out: NDArray[Any] | None,
    rules: Rules | None,
    maps: Maps | None,
    on_torch: bool,
    refuses_gradients: bool,
    /,
) -> Any: ...

explain_attention = attention

def attention_gradients(
    call: AttentionCall,
    operands: tuple[Any, ...],
    rules: Rules | None,
    maps: Maps | None,
    wants_mask: bool,
    wants_sinks: bool,
    /,
) -> tuple[Any, ...] | None: ...

class Rules:
    def __init__(
        self,
        *,
        causal: bool,
        from_end: bool,
        in_documents: bool,
        offsets: tuple[int, ...],
        window: tuple[int, int] | None,
        first_keys: int,
        chunks: tuple[int, int] | None,
        prefixes: tuple[int, ...],
        starts: tuple[int, ...],
        lengths: tuple[int, ...],
        documents: tuple[tuple[tuple[int, int, int, int], ...], ...],
        slopes: tuple[tuple[float, ...], ...],
    ) -> None: ...
    def written(self, sequences: int, rows: int, keys: int, /) -> NDArray[Any]: ...
    def biases(self, sequences: int, heads: int, rows: int, keys: int, /) -> NDArray[Any]: ...

class Maps: ...

def output_of_where(condition: Any, x: Any, y: Any, /) -> NDArray[Any]: ...
def check_overlaps(out: NDArray[Any], condition: Any, x: Any, y: Any, /) -> None: ...
def view(foreign: object, /) -> NDArray[Any]: ...
def view_of_tensor(value: object, /) -> NDArray[Any] | None: ...
def view_at(
    address: int, extents: Any, strides: Any, dtype: np.dtype[Any], owner: object, /
) -> NDArray[Any]: ...
def exported(array: NDArray[Any], /) -> Any: ...
def install_torch_selects(capability: str, /) -> bool: ...
def uninstall_torch_selects() -> None: ...
def count_torch_selects() -> int: ...
def bound_torch_selects(least_elements: int, /) -> int: ...
def version() -> str: ...
def instruction_set() -> str: ...
