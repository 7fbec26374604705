# SPDX-License-Identifier: MIT
"""_core.pyi has what the compiled module has. `python python/tests/test_stubs.py` prints a new one."""

import ast
import re
from pathlib import Path

import pytest

import bracewell


def new_stub():
    stubgen = pytest.importorskip("nanobind.stubgen")
    generator = stubgen.StubGen(bracewell._core, include_private=True)
    generator.put(bracewell._core)
    return "# SPDX-License-Identifier: MIT\n" + re.sub(r"(?m)^(\w+: str) = .*", r"\1", generator.get()) + "__version__: str\n"


def signatures(text):
    """Names of classes, functions and values, with the number of arguments that a function takes."""
    found = set()

    def visit(body, prefix):
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, prefix + node.name + ".")
            elif isinstance(node, ast.FunctionDef):
                found.add((prefix + node.name, len(node.args.posonlyargs) + len(node.args.args)))
            elif isinstance(node, ast.AnnAssign):
                found.add((prefix + node.target.id, None))

    visit(ast.parse(text).body, "")
    return found


def test_the_stub_has_what_the_module_has():
    stub = Path(bracewell.__file__).with_name("_core.pyi").read_text()
    assert signatures(stub) == signatures(new_stub())


if __name__ == "__main__":
    print(new_stub(), end="")
