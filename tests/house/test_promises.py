"""Promises and tests are tied both ways: see tests/promises.toml."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]


def promised() -> dict[str, dict[str, str]]:
    groups = tomllib.loads((TESTS / "promises.toml").read_text(encoding="utf-8"))
    return {f"{group}.{name}": promise for group, promises in groups.items() for name, promise in promises.items()}


def marked() -> Iterator[tuple[str, str]]:
    """(promise, file) of every mark in the suite."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise":
                yield from ((ast.literal_eval(argument), path.name) for argument in node.args)


def test_every_promise_has_a_test() -> None:
    kept = {promise for promise, _ in marked()}

    assert sorted(promised().keys() - kept) == []


def test_every_test_that_names_a_promise_names_one_that_exists() -> None:
    known = promised().keys()

    assert [(promise, file) for promise, file in marked() if promise not in known] == []


def test_every_promise_has_a_source_and_a_sentence() -> None:
    unsaid = [name for name, each in promised().items() if not each["source"] or not each["says"].endswith(".")]

    assert unsaid == []
