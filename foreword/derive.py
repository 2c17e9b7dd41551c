"""Fields that edges give an entity: whom it is linked to, what it waits for, how far it is.

Computed for the few entities that are shown, from the live edges of the whole project. A kind names the rules
it wants (``Kind.derived``); this table is all there is.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

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
    """

    links: Mapping[str, set[str]]
    waits_for: set[str]
    waiting: set[str]
    tasks: set[str]
    done: set[str]
    open_waits: tuple[str, ...]


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


class Surroundings:
    """Neighbourhoods of the entities shown, gathered in two passes over the live edges."""

    def __init__(
        self,
        graph: Graph,
        shown: Iterable[str],
        done: frozenset[str],
        open_waits: Mapping[str, tuple[str, ...]],
    ) -> None:
        """``done`` holds the finished tasks; ``open_waits`` is ``Buckets.waits_for``."""
        self._graph = graph
        self._done = done
        self._open_waits = open_waits
        shown = set(shown)
        near: dict[str, list[tuple[str, str]]] = {i: [] for i in shown}
        relations = [key for key in graph.edges if key[1] in near or key[2] in near]
        for rel, src, dst in relations:
            if src in near:
                near[src].append((rel, dst))
            if dst in near:
                near[dst].append((rel, src))
        self._near = near
        self._waits_for: dict[str, set[str]] = {}
        self._waiting: dict[str, set[str]] = {}
        for who, whom in waits(relations):
            self._waits_for.setdefault(who, set()).add(whom)
            self._waiting.setdefault(whom, set()).add(who)
        self._plan_tasks = self._tasks_of_plans()

    def _tasks_of_plans(self) -> dict[str, set[str]]:
        """Tasks of the plans that goals shown are linked to, and of the plans shown."""
        kind_of = self._graph.kind_of
        plans = {i for i in self._near if kind_of[i] == "plan"}
        for entity, links in self._near.items():
            if kind_of[entity] == "goal":
                plans.update(other for rel, other in links if kind_of[other] == "plan")
        tasks: dict[str, set[str]] = {plan: set() for plan in plans}
        for _, src, dst in [key for key in self._graph.edges if key[0] == "has_task"]:
            if src in tasks and kind_of[dst] == "task":
                tasks[src].add(dst)
        return tasks

    def of(self, entity: str) -> Neighbourhood:
        """The neighbourhood of an entity shown."""
        kind_of = self._graph.kind_of
        links: dict[str, set[str]] = {}
        for _, other in self._near[entity]:
            links.setdefault(kind_of[other], set()).add(other)
        tasks = self._progress_tasks(entity)
        return Neighbourhood(
            links=links,
            waits_for=self._waits_for.get(entity, set()),
            waiting=self._waiting.get(entity, set()),
            tasks=tasks,
            done=tasks & self._done,
            open_waits=self._open_waits.get(entity, ()),
        )

    def _progress_tasks(self, entity: str) -> set[str]:
        """A plan's own tasks; a goal's: those that support it or that it has, and its plans' tasks."""
        kind_of = self._graph.kind_of
        if kind_of[entity] == "plan":
            return self._plan_tasks[entity]
        if kind_of[entity] != "goal":
            return set()
        tasks: set[str] = set()
        for rel, other in self._near[entity]:
            if kind_of[other] == "task" and rel in {"supports_goal", "has_task"}:
                tasks.add(other)
            elif kind_of[other] == "plan" and rel in {"supports_goal", "has_plan"}:
                tasks |= self._plan_tasks[other]
        return tasks
