"""The layout of what is published changes only with its version: readers of another version take it for a miss."""

from typing import Any

from strategies import a_project, a_task, an_edge, rendered, written

from foreword import codec
from foreword.stamp import SCHEMA, Stamp

LAYOUTS = {
    1: {
        "stamp": 11,
        "fields": ["data", "head", "lines", "meta", "text"],
        "data": {
            "project_id": "str",
            "as_of": "str",
            "zone": "str",
            "header": "dict",
            "graph": "dict",
            "slices": "dict",
            "coverage": "dict",
            "recent": "dict",
            "handles": "dict",
        },
        "head": {"line": "str", "tokens": "int", "relevance": "int", "header": "dict"},
        "line": ["int", "NoneType", "int", "str"],
    },
    2: {
        "stamp": 11,
        "fields": ["data", "head", "lines", "meta", "text"],
        "data": {
            "project_id": "str",
            "as_of": "str",
            "zone": "str",
            "header": "dict",
            "graph": "dict",
            "slices": "dict",
            "coverage": "dict",
            "recent": "dict",
            "handles": "dict",
            "answers": "list",
        },
        "head": {"line": "str", "tokens": "int", "relevance": "int", "header": "dict"},
        "line": ["int", "NoneType", "int", "str"],
    },
}
"""By version of the schema. Whoever has to change an entry has to raise ``SCHEMA``, and to add one instead."""


def shape(value: dict[str, Any]) -> dict[str, str]:
    return {name: type(part).__name__ for name, part in value.items()}


def test_the_layout_is_that_of_its_version() -> None:
    rows = a_project(tasks=[a_task("one"), a_task("two")], edges=[an_edge("one", "blocks", "two")])
    content = rendered(rows)
    stamp = Stamp(epoch=1, generation=2)

    fields = codec.encode(content, stamp, written(rows))
    lines = codec._loads(fields["lines"])

    assert LAYOUTS[SCHEMA] == {
        "stamp": len(stamp.line().split()),
        "fields": sorted(fields),
        "data": shape(codec._loads(fields["data"])),
        "head": shape(codec._loads(fields["head"])),
        "line": [type(part).__name__ for part in lines[1][0]],
    }
