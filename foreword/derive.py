"""Fields that edges give an entity: whom it is linked to, what it waits for, how far it is.

What counts towards a goal or a plan is found once for the whole project (``work_of``), because bundles and briefs
ask for it of every goal; the other fields are computed for the few entities that are shown. A kind names the rules
it wants (``Kind.derived``); this table is all there is.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from foreword.edges import waits
from foreword.graph import Graph
from foreword.kinds import Kind


class Neighbourhood(NamedTuple):
    """What one entity is linked to.

    Attributes:
        links: ids of linked entities by kind, whatever the relation.
        waits_for, waiting: ids it waits for, ids that wait for it.
        tasks: the tasks that count towards its progress (goals, plans).
        done: those of them that are finished.
        open_waits: of ``waits_for``, those still open while it is open itself.
        needed_by: the number of open entities that wait for it while it is open itself.
    """

    links: Mapping[str, set[str]]
    waits_for: set[str]
    waiting: set[str]
    tasks: set[str]
    done: set[str]
    open_waits: tuple[str, ...]
    needed_by: int = 0


Value = int | list[str] | None

RULES: dict[str, Callable[[Neighbourhood, str], Value]] = {
    "links": lambda n, kind: sorted(n.links.get(kind, ())),
    "dependency_count": lambda n, _: len(n.waits_for),
    "dependent_count": lambda n, _: len(n.waiting),
    "waits_for": lambda n, _: list(n.open_waits),
    "total_tasks": lambda n, _: len(n.tasks),
    "completed_tasks": lambda n, _: len(n.done),
    "progress_percent": lambda n, _: 100 * len(n.done) // len(n.tasks) if n.tasks else None,
}


def derived(kind: Kind, near: Neighbourhood) -> dict[str, Value]:
    """The derived fields of an entity of ``kind``, by name."""
    return {field.name: RULES[field.rule](near, field.kind) for field in kind.derived}


@dataclass(frozen=True, slots=True)
class Work:
    """What works towards the goals and plans of a project.

    Attributes:
        tasks: by goal or plan, the tasks that count towards its progress: a plan's own; a goal's those that
        support
            it or that it has, and its plans' tasks. Without an entry there are none.
        served: the goals that any task or plan is linked to, whatever the relation.
    """

    tasks: Mapping[str, set[str]]
    served: frozenset[str]


def work_of(graph: Graph) -> Work:
    """Who works towards what. Looks at the edges between the kinds in question only."""
    kind_of = graph.kind_of
    tasks: dict[str, set[str]] = {}
    served: set[str] = set()
    for _, plan, task in _between(graph, "plan", "task", {"has_task"}):
        if kind_of[task] == "task":
            tasks.setdefault(plan, set()).add(task)
    for rel, one, other in _between(graph, "goal", "task"):
        goal, task = (one, other) if kind_of[one] == "goal" else (other, one)
        served.add(goal)
        if rel in {"supports_goal", "has_task"}:
            tasks.setdefault(goal, set()).add(task)
    for rel, one, other in _between(graph, "goal", "plan"):
        goal, plan = (one, other) if kind_of[one] == "goal" else (other, one)
        served.add(goal)
        if rel in {"supports_goal", "has_plan"} and plan in tasks:
            tasks.setdefault(goal, set()).update(tasks[plan])
    return Work(tasks=tasks, served=frozenset(served))


def _between(
    graph: Graph, kind: str, other: str, relations: Collection[str] | None = None
) -> Iterator[tuple[str, str, str]]:
    """The edges between two kinds, of ``relations`` or of any."""
    either = (kind, other), (other, kind)
    for (rel, *ends), keys in graph.groups.items():
        if tuple(ends) in either and (relations is None or rel in relations):
            yield from keys


class Waiting(Protocol):
    """Who waits for whom among what is open (``foreword.buckets.Buckets``)."""

    @property
    def waits_for(self) -> Mapping[str, tuple[str, ...]]:
        """By who waits, for whom."""

    @property
    def needed_by(self) -> Mapping[str, tuple[str, ...]]:
        """By who is waited for, who waits."""


class Surroundings:
    """Neighbourhoods of the entities shown, gathered in one pass over the live edges."""

    def __init__(
        self,
        graph: Graph,
        shown: Iterable[str],
        done: frozenset[str],
        work: Work,
        waiting: Waiting,
    ) -> None:
        """``done`` holds the finished tasks."""
        self._graph = graph
        self._done = done
        self._work = work
        self._open = waiting
        near: dict[str, list[str]] = {i: [] for i in shown}
        relations = [key for key in graph.edges if key[1] in near or key[2] in near]
        for _, src, dst in relations:
            if src in near:
                near[src].append(dst)
            if dst in near:
                near[dst].append(src)
        self._near = near
        self._waits_for: dict[str, set[str]] = {}
        self._waiting: dict[str, set[str]] = {}
        for who, whom in waits(relations):
            self._waits_for.setdefault(who, set()).add(whom)
            self._waiting.setdefault(whom, set()).add(who)

    def of(self, entity: str) -> Neighbourhood:
        """The neighbourhood of an entity shown."""
        kind_of = self._graph.kind_of
        links: dict[str, set[str]] = {}
        for other in self._near[entity]:
            kind = kind_of[other]
            if kind in links:
                links[kind].add(other)
            else:
                links[kind] = {other}
        tasks = self._work.tasks.get(entity, _NONE)
        return Neighbourhood(
            links,
            self._waits_for.get(entity, _NONE),
            self._waiting.get(entity, _NONE),
            tasks,
            tasks & self._done if tasks else _NONE,
            self._open.waits_for.get(entity, ()),
            len(self._open.needed_by.get(entity, ())),
        )


_NONE: set[str] = set()
