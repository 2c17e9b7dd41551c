"""The sections of a brief in order, before they are fitted: what may stand in each, and what matters more.

Nothing is computed anew: every number is the document's.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from prompts.brief_items import (
    CHANGES,
    HOMES,
    LISTS,
    MENTION,
    MENTIONED,
    OF_PROJECT,
    PRIORITIES,
    Plan,
    Reading,
    total_of,
)
from prompts.brief_parts import Entry, Later, Part
from prompts.brief_phrases import (
    FATES,
    LONGEST_NARRATIVE,
    LONGEST_REASON,
    LONGEST_TITLE,
    UNTITLED,
    Item,
    counted,
    in_numbers,
    joined,
    of_project,
    one_line,
)
from prompts.commonmark import Line, Span, height

_EMPTY = {
    "today": "Nothing is due today.",
    "upcoming": "Nothing is due in the next seven days.",
}
_ALL_EMPTY = "Nothing is due today or in the next seven days."
_TOLD = {"today": "due today"}
"""What a heading says of every item under it."""
_INTROS = {"cycles": "None of these can begin before another of them is done."}
_NOTHING = (("overdue", "overdue"), ("blocked", "blocked"), ("at_risk", "at risk"))

_UNLISTED = {
    "task": ("open task", "open tasks"),
    "goal": ("goal", "goals"),
    "milestone": ("milestone", "milestones"),
    "risk": ("risk", "risks"),
}

LINES_OF_A_PROJECT = 8
HINTED = 5


class Sections:
    """The sections of one document."""

    def __init__(self, reading: Reading) -> None:
        self._of = reading

    def parts(self) -> Iterator[Part | Later]:
        """All of them, in order."""
        if self._of.document.get("priorities"):
            yield self._priorities()
        yield from self._changes()
        if self._of.totals.get("projects"):
            yield from self._attention()
            yield from (self._listed(plan) for plan in LISTS if plan.level == 2 and self._says(plan))
        yield from self._project_parts()
        yield from self._quiet()
        yield from self._sentences("hints", "Worth tidying up", 7)
        yield from self._sentences("gone", "Gone while this was written", 2)
        if self._of.totals.get("projects"):
            said = " ".join(f"{each}." for each in in_numbers(self._of.totals))
            yield Part(role="numbers", level=2, heading=(Span("In numbers"),), intro=((Span(said),),))

    def _priorities(self) -> Part:
        items = self._of.document["priorities"]
        return Part(
            role=PRIORITIES.role,
            level=PRIORITIES.level,
            heading=(Span(PRIORITIES.heading),),
            entries=tuple(
                Entry(
                    PRIORITIES.first + PRIORITIES.step * at,
                    self._of.line(item, [one_line(item.get("reason"), LONGEST_REASON)]),
                    (item["id"],),
                )
                for at, item in enumerate(items)
            ),
            ordered=True,
        )

    def _attention(self) -> Iterator[Part]:
        plans = [plan for plan in LISTS if plan.path[0] == "attention" and self._of.list_of(*plan.path)[0]]
        nothing = [word for name, word in _NOTHING if not self._of.list_of("attention", name)[0]]
        intro = ((Span(f"Nothing is {joined(nothing, ' or ')}."),),) if nothing else ()
        yield Part(role="attention", level=2, heading=(Span("Needs attention"),), intro=intro)
        yield from map(self._listed, plans)

    def _says(self, plan: Plan) -> bool:
        """An empty week is said once, under today."""
        if plan.path[-1] == "upcoming" and self._is_empty_week():
            return False
        return plan.path[-1] in _EMPTY or self._of.list_of(*plan.path)[0] > 0

    def _is_empty_week(self) -> bool:
        return not any(self._of.list_of(name)[0] for name in _EMPTY)

    def _intro(self, name: str, total: int) -> str | None:
        if total:
            return _INTROS.get(name)
        return _ALL_EMPTY if self._is_empty_week() else _EMPTY[name]

    def _listed(self, plan: Plan) -> Part:
        name, (total, items) = plan.path[-1], self._of.list_of(*plan.path)
        own = [item for item in items if self._of.home.get(item["id"]) == name]
        listed = tuple(item["id"] for item in items)
        note = self._elsewhere(name, listed)
        return Part(
            role=plan.role,
            level=plan.level,
            heading=(Span(plan.heading),),
            total=total,
            listed=listed,
            intro=((Span(intro),),) if (intro := self._intro(name, total)) else (),
            entries=tuple(
                Entry(
                    plan.first + plan.step * at,
                    self._of.line(item, [each for each in self._of.facts(item, name) if each != _TOLD.get(name)]),
                    (item["id"],),
                )
                for at, item in enumerate(own)
            ),
            after=note,
            reserve=height(note(frozenset(listed), 0)),
        )

    def _elsewhere(self, name: str, listed: Sequence[str]) -> Callable[[frozenset[str], int], tuple[Line, ...]]:
        """Says where the rest of a list stands."""
        headings = {plan.path[-1]: plan.heading for plan in (PRIORITIES, *LISTS)}

        def note(ids: frozenset[str], shown: int) -> tuple[Line, ...]:
            homes = Counter(
                self._of.home[each] for each in listed if each in ids and self._of.home.get(each) != name
            )
            places = [f'{homes[home]:,} under "{headings[home]}"' for home in HOMES if homes[home]]
            return ((Span(f"{'Plus' if shown else 'Listed:'} {joined(places)}."),),) if places else ()

        return note

    # ---- since the last brief

    def _changes(self) -> Iterator[Part]:
        changes = self._of.document.get("changes") or {}
        since = changes.get("since") or self._of.document.get("since")
        if not since:
            return
        lines: list[tuple[Line, tuple[str, ...]]] = [
            (line, ()) for line in self._fates(changes.get("priorities") or ())
        ]
        lines += [found for name, words in CHANGES.items() if (found := self._change(name, words))]
        if not lines and (self._of.document.get("summary") or {}).get("words") == "template":
            return  # the template's summary has said so
        yield Part(
            role="changes",
            level=2,
            heading=(Span(f"Since the brief of {self._of.calendar.in_full(since)}"),),
            intro=() if lines else ((Span("Nothing new: no task became overdue, was done or moved."),),),
            entries=tuple(Entry(3 + at * 0.1, line, entities) for at, (line, entities) in enumerate(lines)),
        )

    def _fates(self, items: Sequence[Item]) -> Iterator[Line]:
        """What became of the actions that the last brief put first: those are named that are not as they were."""
        if not items:
            return
        of_many = len(items) > 1
        moved = [item for item in items if item.get("became") != "open"]
        if not moved:
            still = (
                f"None of its {len(items):,} priorities is done yet" if of_many else "Its priority is not done yet"
            )
            yield (Span(still),)
            return
        done = sum(each["became"] == "done" for each in items)
        told = f"Its priorities ({done:,} of {len(items):,} done): " if of_many else "Its priority: "
        named = [
            (*self._of.title_of(item), Span(f" {FATES[item['became']](item, self._of.calendar)}"))
            for item in moved[:MENTIONED]
        ]
        left = len(items) - len(moved)
        rest = f", the other {'one is' if left == 1 else f'{left:,} are'} still open" if left else ""
        yield (Span(told), *_enumerated(named, len(moved)), *((Span(rest),) if rest else ()))

    def _change(self, name: str, words: str) -> tuple[Line, tuple[str, ...]] | None:
        """One line for one kind of change, and who stands in it by title: who has a line elsewhere does not."""
        total, items = self._of.list_of("changes", name)
        if not total:
            return None
        if name == "newly_done" and all(self._of.home.get(item["id"]) == "wins" for item in items):
            return (Span(f'{words} ({total:,}): see "Wins"'),), ()
        named = items[:MENTIONED]
        count = f"{total:,}" if total == len(named) else f"{len(named):,} of {total:,}"
        line = (Span(f"{words} ({count}): "), *_enumerated(list(map(self._of.mention, named)), len(named)))
        return line, tuple(item["id"] for item in named if self._of.home[item["id"]] == MENTION)

    # ---- projects

    def _project_parts(self) -> Iterator[Part | Later]:
        if not self._of.projects:
            return
        total = len(self._of.projects)
        if not self._of.alone:
            yield Part(
                role="projects",
                level=2,
                heading=(Span("Projects"),),
                total=total,
                after=lambda _ids, shown: _others(total - shown),
                reserve=height(_others(total)),
            )
        for at, project in enumerate(self._of.projects):
            rank = 5.5 + at * 0.3
            yield Later(rank, partial(self._project, project, rank))

    def _project(self, project: Item, rank: float) -> Part:
        listed = {name: (project.get(name) or {}).get("items") or () for name in OF_PROJECT}
        chosen = self._chosen(listed)
        after = self._rest(project, listed)
        everything = frozenset(item["id"] for items in listed.values() for item in items)
        # All that stands above, and all that stands nowhere: never both, but neither ever takes more.
        reserve = height(after(everything, 1)) + height(after(frozenset(), 1))
        return Part(
            role="project",
            level=2 if self._of.alone else 3,
            heading=self._heading(project),
            intro=tuple(self._about(project)),
            entries=tuple(
                Entry(
                    rank + 0.5 + 0.7 * at,
                    self._of.line(item, self._of.facts(item, *names), alone=True),
                    (item["id"],),
                )
                for at, (item, names) in enumerate(chosen)
            ),
            rank=rank,
            after=after,
            reserve=reserve,
        )

    def _chosen(self, listed: Mapping[str, Sequence[Item]]) -> list[tuple[Item, list[str]]]:
        """The items for a project's section, each with the lists that have it: none that a list before shows, no
        drafts.
        """
        names: dict[str, list[str]] = {}
        for name, items in listed.items():
            for item in items:
                names.setdefault(item["id"], []).append(name)
        chosen: dict[str, Item] = {}
        for name, most in OF_PROJECT.items():
            fresh = [
                item
                for item in listed[name]
                if item["id"] not in self._of.home and item["id"] not in chosen and item.get("status") != "draft"
            ]
            chosen |= {item["id"]: item for item in fresh[:most]}
        return [(item, names[entity]) for entity, item in list(chosen.items())[:LINES_OF_A_PROJECT]]

    def _heading(self, project: Item) -> Line:
        name, handle = one_line(project.get("name"), 80) or UNTITLED, one_line(project.get("handle"), 20)
        return (Span(name, "name"), Span(f" ({handle})" if handle else ""))

    def _about(self, project: Item) -> Iterator[Line]:
        if narrative := one_line((project.get("narrative") or {}).get("text"), LONGEST_NARRATIVE):
            yield (Span(narrative),)
        said = list(of_project(project.get("counts") or {}, project.get("state")))
        if (end := project.get("end")) and self._of.calendar.is_ahead(end):
            said.append(f"Ends {self._of.calendar.day(end)}")
        yield (Span(" ".join(f"{each}." for each in said)),)
        if step := one_line(project.get("next_step"), LONGEST_TITLE):
            yield (Span(f"Next step: {step}"),)

    def _rest(
        self, project: Item, listed: Mapping[str, Sequence[Item]]
    ) -> Callable[[frozenset[str], int], tuple[Line, ...]]:
        """Says which of a project's items stand above, and how many of what is open stand nowhere."""
        above = {item["id"] for items in listed.values() for item in items if item["id"] in self._of.home}
        known = self._of.open[project["id"]]
        totals = {name: total_of(project.get(f"{name}s")) for name in ("goal", "milestone", "risk")}
        totals = {"task": (project.get("counts") or {}).get("open") or 0, **totals}

        def rest(ids: frozenset[str], shown: int) -> tuple[Line, ...]:
            there = counted(len(above & ids), "item", "items")
            missing = {kind: total - len(known[kind] & ids) for kind, total in totals.items()}
            unlisted = [counted(n, *_UNLISTED[kind]) for kind, n in missing.items() if n > 0]
            said = [
                f"{'Plus ' if shown else ''}{there} listed above." if above & ids else "",
                f"Not listed: {joined(unlisted)}." if unlisted else "",
            ]
            return ((Span(" ".join(filter(None, said))),),) if any(said) else ()

        return rest

    def _quiet(self) -> Iterator[Part]:
        quiet = self._of.document.get("quiet") or {}
        if not (total := quiet.get("total") or 0):
            return
        yield Part(
            role="quiet",
            level=2,
            heading=(Span("Quiet projects"),),
            total=total,
            entries=tuple(
                Entry(7.5 + 0.4 * at, self._quiet_line(each)) for at, each in enumerate(quiet.get("items") or ())
            ),
            after=lambda _ids, shown: _more(total - shown, "more quiet project", "more quiet projects"),
            reserve=len(f"And {total:,} more quiet projects.") + 2,
        )

    def _quiet_line(self, project: Item) -> Line:
        state = "in planning, " if project.get("state") == "planning" else ""
        opened = project.get("open") or 0
        return (
            *self._heading(project),
            Span(f": {state}{counted(opened, 'open task', 'open tasks') if opened else 'no open tasks'}"),
        )

    def _sentences(self, name: str, heading: str, rank: float) -> Iterator[Part]:
        said = [each for each in self._of.document.get(name) or () if one_line(each, 1)]
        if not said:
            return
        most = len(said)
        yield Part(
            role=name,
            level=2,
            heading=(Span(heading),),
            entries=tuple(
                Entry(rank + 0.1 * at, (Span(one_line(each, 200)),)) for at, each in enumerate(said[:HINTED])
            ),
            after=lambda _ids, shown: _more(most - shown, "more", "more"),
            reserve=len(f"And {most:,} more.") + 2,
        )


def _enumerated(lines: Sequence[Line], total: int) -> Line:
    """Lines in a row, and how many are left out."""
    rest = ((Span(f"{total - len(lines):,} more"),),) if total > len(lines) else ()
    return tuple(span for at, line in enumerate((*lines, *rest)) for span in ((Span(", "),) if at else ()) + line)


def _others(projects: int) -> tuple[Line, ...]:
    found = counted(projects, "more has", "more have")
    return ((Span(f"First those that press most; {found} something to say."),),) if projects > 0 else ()


def _more(number: int, one: str, many: str) -> tuple[Line, ...]:
    return ((Span(f"And {counted(number, one, many)}."),),) if number > 0 else ()
