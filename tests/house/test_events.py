"""What is said and counted is on record, and what is on record is said and counted: by the code itself."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from worker.events import COMMON, EVENTS, UP
from worker.metrics import METRICS, Row

CHECKOUT = Path(__file__).parents[2]
ROOMS = ("foreword", "loaders", "prompts", "tasks", "worker")
TELEMETRY = (CHECKOUT / "docs" / "telemetry.md").read_text(encoding="utf-8")


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """(place, function, call) of the functions of ``worker.events`` that say something, or of a logger."""
    for room in ROOMS:
        for path in sorted((CHECKOUT / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            ours = imported(tree) if path.name != "events.py" else {"emit", "_say"}
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and (name := called(node.func, ours)):
                    yield f"{path.relative_to(CHECKOUT)}:{node.lineno}", name, node


def imported(tree: ast.Module) -> set[str]:
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    found = {name.name for node in froms if node.module == "worker.events" for name in node.names}
    return found | {
        "events" for node in froms if node.module == "worker" for n in node.names if n.name == "events"
    }


def called(function: ast.expr, ours: set[str]) -> str:
    """``emit`` or ``last``, by themselves or of the module of events, or ``log`` for a method of a logger."""
    if isinstance(function, ast.Name):
        return function.id if function.id in ours & SAYING else ""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        if function.value.id == "log":
            return "log" if function.attr in LEVELS else ""
        return function.attr if function.value.id in ours & {"events"} and function.attr in SAYING else ""
    return ""


SAYING = {"emit", "last", "_say"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


@cache
def said() -> list[tuple[str, str, set[str]]]:
    """(place, event, fields) of whatever is said."""
    return list(looked_for())


def looked_for() -> Iterator[tuple[str, str, set[str]]]:
    for place, name, call in calls():
        first = call.args[0]
        if name == "log":
            message = str(getattr(first, "value", ""))
            yield place, message.partition(" ")[0], set(re.findall(r"(\w+)=%", message))
            continue
        if place.startswith("worker/events.py") and not isinstance(first, ast.Constant):
            continue  # where it is passed on
        assert isinstance(first, ast.Constant), f"{place}: an event has a name that can be looked up"
        assert all(word.arg for word in call.keywords), f"{place}: fields have names that can be looked up"
        yield place, str(first.value), {str(word.arg) for word in call.keywords}


PASSED_ON = {"library_said"}


def test_every_event_that_is_said_is_on_record_with_its_fields() -> None:
    wrong = [
        f"{place} {event} {sorted(fields)}"
        for place, event, fields in said()
        if event not in EVENTS or not fields <= set(EVENTS[event].fields)
    ]

    assert wrong == []


def test_every_event_on_record_is_said_somewhere_with_each_of_its_fields() -> None:
    found: dict[str, set[str]] = {name: set() for name in PASSED_ON}
    for _, event, fields in said():
        found.setdefault(event, set()).update(fields)

    assert EVENTS.keys() - found.keys() == set()
    implied = {"exception", "reason", "error"}  # of a logged exception, and of a process's last word
    unsaid = {name: set(EVENTS[name].fields) - fields - implied for name, fields in found.items()}
    assert {name: fields for name, fields in unsaid.items() if fields and name not in PASSED_ON} == {}


def told_by_up() -> Iterator[tuple[str, set[str]]]:
    """(name, fields) of what ``up`` says. Those of a process are ``Kept.facts``."""
    for path in ("supervisor.py", "lookout.py", "commands/up.py"):
        for node in ast.walk(ast.parse((CHECKOUT / "worker" / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Event":
                given = {str(word.arg): word.value for word in node.keywords}
                assert isinstance(given["name"], ast.Constant), f"{path}:{node.lineno}: a name to be looked up"
                yield str(given["name"].value), set(re.findall(r"facts\((\w+)=", ast.unparse(node)))


def test_what_up_says_is_on_record_and_nothing_else_is() -> None:
    found = list(told_by_up())

    assert {name for name, _ in found} == UP.keys()
    assert [(name, fields) for name, fields in found if not fields <= set(UP[name].fields)] == []


def test_a_room_that_logs_does_so_under_a_name_that_the_events_know() -> None:
    loggers = [
        (path.name, name)
        for room in ROOMS
        for path in (CHECKOUT / room).rglob("*.py")
        for name in re.findall(r"log = .*getLogger\(([^)]*)\)", path.read_text(encoding="utf-8"))
    ]

    assert [each for each in loggers if each[0] != "events.py" and not each[1].startswith('"foreword.')] == []


def test_no_field_of_an_event_is_named_as_one_that_all_have() -> None:
    assert {name for event in EVENTS.values() for name in event.fields} & COMMON.keys() == set()


def events_table() -> str:
    rows = ["| event | level | fields | meaning |", "|---|---|---|---|"]
    for name, event in EVENTS.items():
        fields = ", ".join(f"`{each}`" for each in event.fields)
        rows.append(f"| `{name}` | {event.level} | {fields} | {event.meaning} |")
    return "\n".join(rows)


def up_table() -> str:
    rows = ["| event | level | fields | meaning |", "|---|---|---|---|"]
    for name, event in UP.items():
        rows.append(
            f"| `{name}` | {event.level} | {', '.join(f'`{e}`' for e in event.fields)} | {event.meaning} |"
        )
    return "\n".join(rows)


def common_table() -> str:
    rows = ["| field | is |", "|---|---|"]
    rows += [f"| `{name}` | {meaning} |" for name, meaning in COMMON.items()]
    return "\n".join(rows)


def metrics_table() -> str:
    rows = ["| metric | kind | of | meaning |", "|---|---|---|---|"]
    for name, row in METRICS.items():
        rows.append(f"| `{name}{labelled(row)}` | {row.kind} | {row.who} | {row.meaning} |")
    return "\n".join(rows)


def labelled(row: Row) -> str:
    return "{" + ", ".join(row.labels) + "}" if row.labels else ""


@pytest.mark.parametrize("table", [events_table, up_table, common_table, metrics_table])
def test_the_documents_show_the_tables_as_they_are(table: object) -> None:
    assert callable(table)
    assert table() in TELEMETRY


def test_no_metric_has_a_label_that_grows() -> None:
    assert max(len(values) for row in METRICS.values() for values in row.labels.values()) < 20


def test_nothing_loads_what_traces_are_made_with_before_there_is_one() -> None:
    loading = re.compile(r"^(?:from|import) opentelemetry", re.MULTILINE)
    modules = [path for room in ROOMS for path in (CHECKOUT / room).rglob("*.py")]

    assert [path.name for path in modules if loading.search(path.read_text(encoding="utf-8"))] == []
