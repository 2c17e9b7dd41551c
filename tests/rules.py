"""What counts as what: the tables of the specification of the brief and of the catalogue of questions, read row by
row and slowly. Nothing here calls what it is compared with.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

from strategies import TODAY, reading, tasks_of_goal

from foreword.kinds import KINDS
from foreword.rows import ProjectRows
from foreword.text import clean

DONE = {"done", "completed", "achieved", "abandoned", "cancelled", "closed", "mitigated", "archived"}
DUE = {"task": "due_at", "goal": "target_date", "milestone": "due_at"}
HAPPENED = {"decision": "decision_at"}
TOUCHED = {"signal": "ts", "insight": "created_at"}
WEEK = timedelta(days=7)


def cells(rows: ProjectRows) -> dict[str, dict[str, Any]]:
    """Every entity's cells by name, and its kind."""
    return {
        row[0]: {
            "kind": kind,
            **{field.name: cell for field, cell in zip(KINDS.by_name[kind].light, row[1:], strict=True)},
        }
        for kind, table in rows.entities.items()
        for row in table
    }


def local(stored: str | None, zone: ZoneInfo) -> date | None:
    """The calendar date of a stored time, read slowly."""
    try:
        instant = datetime.strptime((stored or "").replace("+00", "+0000"), "%Y-%m-%d %H:%M:%S%z")
    except ValueError:
        try:
            instant = datetime.strptime((stored or "").replace("+00", "+0000"), "%Y-%m-%d %H:%M:%S.%f%z")
        except ValueError:
            return None
    try:
        return instant.date() if instant.time() == time.min else instant.astimezone(zone).date()
    except OverflowError:
        return None


def is_open(entity: Mapping[str, Any]) -> bool:
    finished = DONE | {"published"} if entity["kind"] == "output" else DONE
    return entity.get("state_key") not in finished


def by_the_rules(rows: ProjectRows, zone: ZoneInfo) -> dict[str, set[str]]:
    """The brief's table, each row of it one comprehension."""
    known = cells(rows)
    opened = {i for i, entity in known.items() if is_open(entity)}
    tasks = {i for i in opened if known[i]["kind"] == "task"}
    goals, milestones = ({i for i in opened if known[i]["kind"] == kind} for kind in ("goal", "milestone"))
    read = reading(rows)
    waits = {(who, whom) for who, whom in read.waits() if {who, whom} <= tasks}
    dated = {i for i in opened if known[i]["kind"] in DUE and not is_draft_goal(known[i])}
    due = {i: local(known[i][DUE[known[i]["kind"]]], zone) for i in dated}
    start = {i: local(known[i].get("start_at"), zone) for i in dated}
    overdue = {i for i in dated if (day := due[i]) is not None and day < TODAY}
    today = {i for i in dated if TODAY in (due[i], start[i])} - overdue
    soon = {i for i in dated for day in (due[i], start[i]) if day is not None and TODAY < day <= TODAY + WEEK}
    blocked = {i for i in tasks if known[i]["state_key"] == "blocked"} | {who for who, _ in waits}
    in_progress = {i for i in tasks if known[i]["state_key"] == "in_progress"}
    working = {i for i, entity in known.items() if entity["kind"] in {"task", "plan"}}
    happened = {i: local(e[HAPPENED[e["kind"]]], zone) for i, e in known.items() if e["kind"] in HAPPENED}
    touched = {i: local(e[TOUCHED.get(e["kind"], "updated_at")], zone) for i, e in known.items()}
    return {
        "overdue": overdue,
        "today": today,
        "soon": soon,
        "ahead": soon - overdue - today,
        "at_risk": (goals | milestones) & (today | soon),
        "blocked": blocked,
        "ready": {i for i in tasks - blocked if due[i] is not None},
        "in_progress": in_progress,
        "stale": {i for i in in_progress if (day := touched[i]) is not None and day <= TODAY - WEEK},
        "idle": {i for i in goals if not read.neighbours(i) & working},
        "measured": {i for i in goals if tasks_of_goal(read, i)},
        "upcoming": {i for i in milestones if (day := due[i]) is not None and day >= TODAY},
        "happened": {i for i, day in happened.items() if day is not None},
        "needed": {whom for who, whom in read.waits() if {who, whom} <= opened},
        "unblocking": {whom for who, whom in waits if frees(whom, who, waits) and not circular(whom, waits)},
        "changed": {i for i, day in touched.items() if day in (TODAY - timedelta(days=1), TODAY)},
    }


def is_draft_goal(entity: Mapping[str, Any]) -> bool:
    return bool(entity["kind"] == "goal" and entity["state_key"] == "draft")


def frees(whom: str, who: str, waits: set[tuple[str, str]]) -> bool:
    return {b for a, b in waits if a == who} == {whom}


def circular(task: str, waits: set[tuple[str, str]]) -> bool:
    found = {b for a, b in waits if a == task}
    while True:
        more = found | {b for a, b in waits if a in found}
        if more == found:
            return task in found
        found = more


def due_days(rows: ProjectRows, zone: ZoneInfo) -> dict[str, str]:
    """When what is open and can be late is due."""
    days = {
        i: local(entity[DUE[entity["kind"]]], zone)
        for i, entity in cells(rows).items()
        if entity["kind"] in DUE and is_open(entity) and not is_draft_goal(entity)
    }
    return {i: day.isoformat() for i, day in days.items() if day is not None}


# ---- the catalogue of questions

Fact = tuple[tuple[str, str], ...]
Answer = tuple[list[Fact], int, list[list[Fact]]]
"""The facts that must be there, and of how many more which candidates."""

IMPACT = {"low": 1, "medium": 2, "high": 3, "critical": 4}


def exposure(risk: Mapping[str, Any]) -> float:
    """Impact times probability, an unknown probability a half."""
    try:
        chance = float(risk["probability"] or "nan")
    except ValueError:
        chance = 0.5
    return IMPACT.get(risk["impact"], 0) * (0.5 if chance != chance else min(max(chance, 0), 1))  # noqa: PLR0124


def is_said(cell: Any) -> bool:
    """Whether a cell holds anything that can be stated."""
    return cell is not None and clean(str(cell)) != ""


def is_a_number(cell: str | None) -> bool:
    return cell is not None and isfinite(float(cell))


def best(ids: Iterable[str], limit: int, key: Callable[[str], Any], facts: Callable[[str], list[Fact]]) -> Answer:
    """The first few by a key; of those that share the last places, as many as there are places."""
    ordered = sorted(ids, key=key)
    if len(ordered) <= limit:
        return [fact for i in ordered for fact in facts(i)], 0, []
    last = key(ordered[limit - 1])
    sure = [i for i in ordered if key(i) < last]
    tied = [i for i in ordered if key(i) == last]
    if len(sure) + len(tied) == limit:
        return [fact for i in ordered[:limit] for fact in facts(i)], 0, []
    return [fact for i in sure for fact in facts(i)], limit - len(sure), [facts(i) for i in tied]


def by_the_catalogue(rows: ProjectRows, zone: ZoneInfo) -> dict[str, Answer]:
    """Every question that the rows can be asked, with the facts that answer it."""
    known, found, due = cells(rows), by_the_rules(rows, zone), due_days(rows, zone)
    opened = {i for i, entity in known.items() if is_open(entity)}
    waits = {(who, whom) for who, whom in reading(rows).waits() if {who, whom} <= opened}

    def of(kind: str, ids: Iterable[str]) -> list[str]:
        return [i for i in ids if known[i]["kind"] == kind]

    def pairs(chosen: Iterable[tuple[str, str]]) -> list[Fact]:
        return [((who, whom), (whom, "")) for who, whom in chosen]

    def state(entity: str) -> list[tuple[str, str]]:
        return [(entity, "state_key")] if is_said(known[entity].get("state_key")) else []

    def when(entity: str) -> str:
        return str(known[entity]["decision_at"])

    blocked, overdue = found["blocked"], of("task", found["overdue"])
    needed = {whom: [who for who, other in waits if other == whom] for whom in found["needed"]}
    answers: dict[str, Answer] = {
        "Q1": (
            [
                (("task", "blocked"),),
                *(((i, "blocked"),) for i in blocked),
                *pairs(w for w in waits if w[0] in blocked),
            ],
            0,
            [],
        ),
        "Q2": ([(("task", "overdue"),), *(((i, "due_at"),) for i in overdue)], 0, []),
        "Q3": counted(
            ("risk", "open"),
            best(
                of("risk", opened),
                5,
                lambda i: -exposure(known[i]),
                lambda i: [
                    *([((i, "impact"),)] if is_said(known[i]["impact"]) else []),
                    *([((i, "probability"),)] if is_a_number(known[i]["probability"]) else []),
                ],
            ),
        ),
        "Q4": ([(("goal", "idle"),), *(((i, "idle"),) for i in found["idle"])], 0, []),
        "Q5": ([(("", "changed"),), *(((i, "changed"), *state(i)) for i in found["changed"])], 0, []),
        "Q6": counted(
            ("", "needed"),
            best(
                needed,
                5,
                lambda i: -len(needed[i]),
                lambda i: [((i, "needed_by"),), *pairs((who, i) for who in needed[i])],
            ),
        ),
        "Q7": counted(
            ("task", "ready"),
            best(
                found["ready"],
                5,
                due.__getitem__,
                lambda i: [((i, "due_at"),), *((key,) for key in state(i))],
            ),
        ),
        "Q8": counted(
            ("milestone", "upcoming"), best(found["upcoming"], 3, due.__getitem__, lambda i: [((i, "due_at"),)])
        ),
        "Q9": ([(("goal", "measured"),), *(((i, "progress"),) for i in found["measured"])], 0, []),
        "Q10": counted(
            ("decision", "happened"),
            best(
                of("decision", found["happened"]),
                3,
                lambda i: [-ord(char) for char in when(i)],
                lambda i: [
                    ((i, "decision_at"),),
                    *([((i, "outcome"),)] if is_said(known[i]["outcome"]) else []),
                ],
            ),
        ),
    }
    needs = {"Q1": "task", "Q2": "task", "Q3": "risk", "Q4": "goal", "Q7": "task", "Q8": "milestone"}
    needs |= {"Q9": "goal", "Q10": "decision"}
    answers = {name: answer for name, answer in answers.items() if needs.get(name) not in rows.absent}
    if standing := standing_of(rows, zone):
        answers["Q11"] = standing, 0, []
    kept = [kind.name for kind in KINDS.entities if kind.name not in rows.absent]
    coverage: list[Fact] = [((kind, count),) for kind in kept for count in ("total", "direct", "unlinked")]
    answers["Q12"] = [(("", "unlinked"),), *coverage], 0, []
    return answers


def counted(count: tuple[str, str], answer: Answer) -> Answer:
    """A top list, and the size of the whole set."""
    required, places, tied = answer
    return [(count,), *required], places, tied


def standing_of(rows: ProjectRows, zone: ZoneInfo) -> list[Fact]:
    """State, stage, next step and timeline of the project, as far as it has them."""
    project = dict(zip((field.name for field in KINDS.project.light), rows.project[1:], strict=True))
    said = [name for name in ("state_key", "facet_stage", "next_step_short") if is_said(project[name])]
    said += [name for name in ("start_at", "end_at") if local(project[name], zone) is not None]
    return [((rows.project_id, name),) for name in said]
