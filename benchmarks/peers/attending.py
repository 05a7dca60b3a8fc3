"""The base of peers (libraries to compare with) that compute attention. A form is one way to call
the library."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

REASON = 200  # maximum length of a library's error text in an answer

# A call that runs attention, and a function that converts the call's result to a NumPy array in the
# shape of the query.
Form = tuple[Callable[[], Any], Callable[[Any], Any]]


class Attending:
    """`ways` maps each form's name to a function that prepares the form's call. `load` runs each
    form once and writes its answer into the case's folder. A form that raises is reported as
    refused."""

    forms: dict[str, Callable[[], Any]] = {}  # noqa: RUF012  # each case replaces them

    def ways(self, problem: Any) -> dict[str, Callable[[], Form]]:
        raise NotImplementedError

    def problem(self, case: dict[str, Any]) -> Any:
        raise NotImplementedError

    def load(self, case: dict[str, Any]) -> dict[str, Any]:
        self.forms, answers, refused = {}, {}, {}
        self.operands = self.problem(case)  # keeps the arrays alive: libraries store only addresses
        for form, prepare in self.ways(self.operands).items():
            try:
                call, read = prepare()
                answer = read(call())
            except Exception as error:  # a library may raise any class
                refused[form] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:REASON]
                continue
            answers[form] = f"{type(self).__module__}-{len(answers)}"
            answer.tofile(Path(case["folder"]) / answers[form])
            self.forms[form] = call
        return {"answers": answers, "refused": refused}
