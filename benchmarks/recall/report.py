"""What the measurements look like: tables for people, plain values for scripts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from benchmarks.recall.builders import OURS
from benchmarks.recall.measure import At, Mean, Measured, Unseen, mean_of
from benchmarks.recall.stability import Kept, fifth
from worker.screen import console, heading, table

_PROJECT = ("project", "entities", "facts", "T90")
_AT = ("budget", "R", "A", "S", "W", "tokens", "used", "of oracle", "of bound", "false", "over", "differs")

Value = Callable[[At], float]

_MEANS: Mapping[str, Value] = {
    "R": lambda at: at.scores.recall,
    "A": lambda at: at.scores.whole,
    "S": lambda at: at.scores.silent,
    "W": lambda at: at.scores.worst,
    "oracle": lambda at: at.oracle,
    "bound": lambda at: at.bound,
    "of oracle": lambda at: at.of_oracle,
    "of bound": lambda at: at.of_bound,
    "used": lambda at: at.tokens / at.budget,
}


def show_projects(title: str, projects: Sequence[Measured]) -> None:
    """A line for each project and budget, then the means and the faults."""
    heading(f"{title}: our text (R recall, A whole answers, S silent cuts, W worst question; %)")
    columns: tuple[str, ...] = (*_PROJECT, *_AT)
    console().print(table(columns, [row for each in projects for row in _rows(each)], right=columns[1:]))
    heading(f"{title}: means over {len(projects)} projects, with 95 % bootstrap confidence intervals; %")
    columns = ("budget", *_MEANS)
    rows = [(b, *(_interval(means[name]) for name in _MEANS)) for b, means in means_of(projects).items()]
    console().print(table(columns, rows, right=columns))
    heading(f"{title}: recall of simpler builders, means; %")
    budgets = list(projects[0].at)
    columns = ("builder", *(f"R@{budget}" for budget in budgets))
    recalls = {OURS: {b: fmean(p.at[b].scores.recall for p in projects) for b in budgets}}
    recalls |= others_of(projects)
    rows = [(name, *(_percent(found[b]) for b in budgets)) for name, found in recalls.items()]
    console().print(table(columns, rows, right=columns[1:]))
    _show_faults(projects)


def _rows(project: Measured) -> Iterable[Sequence[Any]]:
    named: tuple[Any, ...] = (project.name[:34], project.entities, project.facts, project.t90 or "none")
    for budget, at in project.at.items():
        shares = (at.scores.recall, at.scores.whole, at.scores.silent, at.scores.worst)
        used = (at.tokens, _percent(at.tokens / budget), _percent(at.of_oracle), _percent(at.of_bound))
        yield (*named, budget, *map(_percent, shares), *used, len(at.scores.false), int(at.over), int(at.differs))
        named = ("",) * len(_PROJECT)


def _show_faults(projects: Sequence[Measured]) -> None:
    """What must be none at all."""
    every = [at for project in projects for at in project.at.values()]
    false = [f"{p.name} at {b}: {text}" for p in projects for b, at in p.at.items() for text in at.scores.false]
    over, differ = sum(at.over for at in every), sum(at.differs for at in every)
    faults = f"{len(false)} false facts, {over} over budget, {differ} differing re-runs"
    console().print(f"{len(every)} texts: {faults}")
    for each in false[:5]:
        console().print(f"  {each}", markup=False)


def means_of(projects: Sequence[Measured]) -> dict[int, dict[str, Mean]]:
    """By budget and name, over projects."""
    return {
        budget: {name: mean_of([value(each.at[budget]) for each in projects]) for name, value in _MEANS.items()}
        for budget in projects[0].at
    }


def others_of(projects: Sequence[Measured]) -> dict[str, dict[int, float]]:
    """Mean recall by builder and budget."""
    return {
        name: {budget: fmean(p.others[name][budget].recall for p in projects) for budget in projects[0].at}
        for name in projects[0].others
    }


def show_unseen(title: str, found: Sequence[Unseen]) -> None:
    """Ours against the best yardstick, on questions that no builder knows."""
    heading(f"{title}: held-out questions, recall; %")
    columns = ("project", "budget", OURS, *found[0].others, "best yardstick", "ahead by")
    rows = [
        (
            each.name[:34],
            each.budget,
            _percent(each.ours),
            *map(_percent, each.others.values()),
            each.best[0],
            _percent(each.ours - each.best[1]),
        )
        for each in found
    ]
    console().print(table(columns, rows, right=columns[1:]))
    behind = [each for each in found if each.ours < each.best[1]]
    console().print(f"behind the best yardstick in {len(behind)} of {len(found)}")


def show_stability(kept: Mapping[str, Sequence[Kept]], recalls: Mapping[str, tuple[float, float]]) -> None:
    """The share of a text that a prompt cache keeps after an edit, by project and by kind of edit."""
    columns = ("", "edits", "kept, mean", "5th percentile", "by worth, mean", "5th percentile ", "R", "R by worth")
    heading("kept prefix after an edit at the default budget: ours, and the same lines in order of worth; %")
    rows = [(name[:34], *_kept(found), *map(_percent, recalls[name])) for name, found in kept.items()]
    every = [each for found in kept.values() for each in found]
    rows.append(("all", *_kept(every), *(_percent(fmean(r[n] for r in recalls.values())) for n in (0, 1))))
    console().print(table(columns, rows, right=columns[1:]))
    heading("kept prefix by kind of edit; %")
    by: dict[str, list[Kept]] = {}
    for each in every:
        by.setdefault(each.edit, []).append(each)
    rows = [(edit, *_kept(found)) for edit, found in sorted(by.items(), key=lambda group: -len(group[1]))]
    console().print(table(columns[:-2], rows, right=columns[1:]))


def _kept(found: Sequence[Kept]) -> tuple[str, ...]:
    both = [each.ours for each in found], [each.by_worth for each in found]
    return str(len(found)), *(_percent(share) for shares in both for share in (fmean(shares), fifth(shares)))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _interval(found: Mean) -> str:
    return f"{_percent(found.mean)} ({_percent(found.low)}-{_percent(found.high)})"


# ---- for scripts


def as_json(projects: Sequence[Measured]) -> dict[str, Any]:
    """Everything that ``show_projects`` shows."""
    return {
        "projects": [_project_json(each) for each in projects],
        "means": {
            str(budget): {name: [each.mean, each.low, each.high] for name, each in means.items()}
            for budget, means in means_of(projects).items()
        },
        "others": {
            name: {str(budget): recall for budget, recall in found.items()}
            for name, found in others_of(projects).items()
        },
    }


def _project_json(project: Measured) -> dict[str, Any]:
    return {
        "name": project.name,
        "entities": project.entities,
        "facts": project.facts,
        "t90": project.t90,
        "at": {
            str(budget): {
                **{name: value(at) for name, value in _MEANS.items()},
                "tokens": at.tokens,
                "false": list(at.scores.false),
                "over": at.over,
                "differs": at.differs,
                "questions": {m.name: [m.present, m.required] for m in at.scores.marks},
            }
            for budget, at in project.at.items()
        },
    }


def unseen_json(found: Sequence[Unseen]) -> list[dict[str, Any]]:
    """Everything that ``show_unseen`` shows."""
    return [{"name": u.name, "budget": u.budget, OURS: u.ours, "others": dict(u.others)} for u in found]


def stability_json(kept: Mapping[str, Sequence[Kept]]) -> dict[str, list[list[Any]]]:
    """By project: every edit's kind, what is kept of our text, and of the same lines by worth."""
    return {name: [[each.edit, each.ours, each.by_worth] for each in found] for name, found in kept.items()}
