"""The fact check: whether a text about a brief says anything that the brief's facts do not. Pure.

It reads a small English and refuses what it cannot read: a false refusal costs a nicer sentence, a false
acceptance is a lie in somebody's morning, or an order that somebody hid in a title. The language is closed:
outside quoted titles stand handles, numbers, dates, words whose truth is looked up (states, kinds, relations),
and the few plain words of ``prompts.vocabulary``. Every statement is tied to what it speaks of: the last entity
named before it in its sentence, else the first one after it, else the whole. What remains unchecked is opinion:
"T1 is urgent".
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import product
from typing import Any

from prompts.reading import (
    APOSTROPHES,
    ASK,
    BARE,
    DATE,
    JOINED,
    NEXT,
    NOUN,
    NUMBER,
    PROJECTS,
    QUOTED,
    SAYS,
    SENTENCE_END,
    STEP,
    STOP,
    SUBJECT,
    Entity,
    Group,
    Known,
    Mark,
    Reading,
    grouped,
    named_together,
    placed,
    shown,
)
from prompts.vocabulary import (
    ANYWHERE,
    CARRIED,
    COUNTS,
    DANGLING,
    NEXTS,
    NOUNS,
    OF_ITEMS,
    OF_PROJECTS,
    RELATIONS,
    ROLE_WORDS,
    ROLES,
)


def problems(text: str, facts: Mapping[str, Any], longest: int) -> list[str]:
    """What is wrong with ``text``, for whoever has to write it again; nothing when it may be used.

    ``facts`` has the shape of ``prompts.words.facts_for_summary``, ``longest`` is in characters.
    """
    text = text.translate(APOSTROPHES)
    wrong = [says for says, found in _FORM if found(text)]
    if len(text) > longest:
        wrong.append(f"it has {len(text)} characters, {longest} are allowed")
    if wrong:
        return wrong
    checked = _Checked(Known.of(facts))
    wrong = list(dict.fromkeys(checked.problems(text)))
    return wrong if wrong or checked.stated else ["it names no entity and no number of the facts"]


# ---- form

_MARKUP = re.compile(r"[<>`*#|\[\]{}\\_~^=@$€£+]|&\w+;|https?:|www\.|\w/\w", re.IGNORECASE)
_DIGITS_ELSEWHERE = re.compile(r"[^\D0-9]|[²³¹¼-¾⁰-₟⅐-↋①-⓿]")
_FORM: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("it is empty", lambda text: not text.strip()),
    ("it has line breaks or characters that cannot be printed", lambda text: not text.isprintable()),
    ("it has markup, a link or a symbol that only code or money needs", lambda t: _MARKUP.search(_outside(t))),
    ("it has digits or numbers other than 0 to 9", lambda text: _DIGITS_ELSEWHERE.search(_outside(text))),
    ("it does not end a sentence", lambda text: text.strip() and text.strip()[-1] not in '.!?)"”'),
)


def _outside(text: str) -> str:
    """Titles hold what their writers wrote; only a title of the facts passes, and whoever shows it escapes it."""
    return QUOTED.sub(" ", text)


# ---- statements


class _Checked:
    """A text, checked sentence by sentence against what is known."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self.stated = 0

    def problems(self, text: str) -> Iterator[str]:
        reading = Reading(self._known)
        held, unknown = reading.hold(text)
        yield from unknown
        carried: tuple[Entity, ...] = ()
        for sentence in SENTENCE_END.split(held):
            marks, wrong = reading.marks(sentence)
            yield from wrong
            groups, misplaced = placed(sentence, marks, named_together(sentence, marks), carried)
            yield from misplaced
            before = carried if CARRIED.search(sentence) else ()
            if not wrong:
                yield from _Sentence(self._known, sentence, marks, groups, before).problems()
            yield from (wrong for group in groups for wrong in group.mismatched)
            self.stated += sum(mark.kind in {SUBJECT, NUMBER} for mark in marks)
            carried = groups[-1].entities if groups else before


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence's statements, each checked of those of whom it is made."""

    known: Known
    text: str
    marks: Sequence[Mark]
    groups: Sequence[Group]
    carried: tuple[Entity, ...]
    tallies: list[int] = field(default_factory=list)  # where numbers end that count many

    def problems(self) -> Iterator[str]:
        used: set[int] = set()
        for place, mark in enumerate(self.marks):
            if mark.kind == NUMBER and place not in used:
                with_it, wrong = self._numbered(place, self._window(place))
                used.update(with_it)
                yield from wrong
            elif mark.kind == DATE:
                yield from self._dated(mark)
        checks = {SAYS: self._said, NOUN: self._kind, ASK: self._asked, NEXT: self._next}
        for place, mark in enumerate(self.marks):
            if mark.kind in checks and place not in used:
                yield from checks[mark.kind](mark)
        yield from self._bare()
        yield from self._unrelated()
        yield from self._loose()

    def _loose(self) -> Iterator[str]:
        """Words that are nothing by themselves, where what they need is not there."""
        if DANGLING.search(self.text):
            yield "a sentence breaks off"
        if any(mark.raw == STEP for mark in self.marks) and not NEXTS.search(self.text):
            yield "a next step is quoted and not called so"
        for mark in self.marks:
            if mark.kind in {SAYS, NOUN} and _FIRST.search(self.text[: mark.start]):
                yield 'it says which is the "first"'
        for found in _SINCE.finditer(self.text):
            after = next((mark for mark in self.marks if mark.start >= found.end()), None)
            if after is None or after.kind != DATE or self.text[found.end() : after.start].strip():
                yield f'no date follows "{found[0]}"'

    # ---- whom

    def _of(self, mark: Mark) -> tuple[Entity, ...]:
        before = [group for group in self.groups if group.end <= mark.start]
        after = [group for group in self.groups if group.start >= mark.end]
        if len(before) > 1 and _GOES_ON.match(self.text[before[-1].end :]) and self._is_object(before[-1]):
            return before[-2].entities
        if before:
            return before[-1].entities
        return self.carried or (after[0].entities if after else ())

    def _is_object(self, group: Group) -> bool:
        """Whether it is for whom another one waits, or whom it frees."""
        before = [mark for mark in self.marks if mark.end <= group.start]
        return bool(before) and before[-1].kind == SAYS and before[-1].value in RELATIONS

    def _projects(self, mark: Mark) -> tuple[Entity, ...]:
        """The projects whose counts are meant: named last before the number, else first after it."""
        those = [group for group in self.groups if group.projects]
        before = [group for group in those if group.end <= mark.start]
        carried = tuple(entity for entity in self.carried if entity.is_project)
        return before[-1].projects if before else carried or (those[0].projects if those else ())

    # ---- kinds and relations

    def _kind(self, mark: Mark) -> Iterator[str]:
        """Of "the task T1", "T1 is a task" and "the next task: T1": whether it is one."""
        after = [group for group in self.groups if group.start >= mark.end]
        before = [group for group in self.groups if group.end <= mark.start]
        one = not mark.raw.lower().endswith("s")
        says = f'"{shown(mark.raw)}" is not the kind of what it is said of'
        if after and re.fullmatch(r",?(?: called| named| titled)? \(?", self.text[mark.end : after[0].start]):
            those = after[0].entities
        elif self._is_end(mark):
            those = ()
            if mark.value != "tasks":
                yield "only tasks wait for each other"
        elif before:
            between = self.text[before[-1].end : mark.start]
            apart = any(m.kind == STOP and before[-1].end <= m.start < mark.start for m in self.marks)
            apart = apart and not re.search(r",(?: is| are)?(?: an?| the| your| one of the)\b[^,]*\Z", between)
            has = before[-1].projects and not re.search(r"\b(?:is|are|was|were)\b", between)
            those = () if apart or has else before[-1].entities
        elif _IT_IS.search(self.text[: mark.start]):
            those = self.carried
            if not those:
                yield says
        else:
            those = after[0].entities if one and after and not after[0].projects else ()
        if any(entity.kind != mark.value for entity in those):
            yield says

    def _is_end(self, noun: Mark) -> bool:
        """Whether the noun is what something waits for or frees: "frees another task"."""
        first = next((mark for mark in reversed(self.marks) if mark.end <= noun.start), None)
        if first is None or first.kind != SAYS or first.value not in RELATIONS:
            return False
        return re.fullmatch(_DETERMINED, self.text[first.end : noun.start]) is not None

    def _asked(self, mark: Mark) -> Iterator[str]:
        """What the reader is asked to do is done to an open item, or to what the facts count."""
        tail, after = self.text[mark.end :], next((m for m in self.marks if m.start >= mark.end), None)
        says = f'"{shown(mark.raw)}" asks for what is no open item of the facts'
        its = re.match(r" (?:it|them|this|these|those|both)\b", tail, re.IGNORECASE)
        before = [group for group in self.groups if group.end <= mark.start]
        if its:
            those = before[-1].entities if before else self.carried
        else:
            while after is not None and after.kind in {SAYS, NUMBER}:
                end = after.end
                after = next((m for m in self.marks if m.start >= end), None)
            if after is not None and after.kind == NOUN and after.value != PROJECTS:
                return
            those = after.value if after is not None and after.kind == SUBJECT else ()
        needed = {"open", "blocked"} if mark.value == "unblock" else {"open"}
        if not those or not all(needed <= entity.says for entity in those):
            yield says
        elif mark.value in OF_ITEMS and any(entity.is_project for entity in those):
            yield f'"{shown(mark.raw)}" asks for a whole project'

    def _next(self, mark: Mark) -> Iterator[str]:
        """A project's next step is quoted; its next milestone is the first of those that are not missed."""
        if "step" in mark.value:
            steps = [m.value for m in self.marks if m.raw == STEP]
            named = [each for m in self.marks if m.kind == SUBJECT and m.raw != STEP for each in m.value]
            projects = [each for each in named or self.carried if each.is_project]
            if projects and not any(each in step for step in steps for each in projects):
                yield f'"{shown(mark.raw)}" stands without the next step of its project, in quotation marks'
        elif "milestone" not in self.text[mark.end : mark.end + 10].lower():
            return
        else:
            after = [group.entities for group in self.groups if group.start >= mark.end]
            those = next(iter([*after, *(group.entities for group in reversed(self.groups))]), ())
            if not those or not all(map(self._is_next, those)):
                yield "the next milestone is another one"

    def _is_next(self, entity: Entity) -> bool:
        due = entity.dates.get("due")
        if entity.kind != "milestones" or due is None or due < self.known.today or "done" in entity.says:
            return False
        others = (e for those in self.known.by_handle.values() for e in those if e.kind == "milestones")
        dues = (e.dates.get("due") for e in others if e.project == entity.project and "done" not in e.says)
        return not any(each and self.known.today <= each < due for each in dues)

    def _bare(self) -> Iterator[str]:
        """A project's name without quotation marks stands where only a name can: it may be an order."""
        named = [found.span() for found in _BARE_NAMED.finditer(self.text)]
        for mark in self.marks:
            if mark.raw == BARE and not any(start <= mark.start < end for start, end in named):
                yield "a project's name needs quotation marks where it is no part of a sentence"

    def _unrelated(self) -> Iterator[str]:
        """Two that stand in one clause are said to be something to each other."""
        for one, other in zip(self.groups, self.groups[1:], strict=False):
            if bool(one.projects) != bool(other.projects):
                continue  # see placed
            between = [mark for mark in self.marks if one.end <= mark.start < other.start]
            joined = any(m.kind in {STOP, NEXT} or m.value in RELATIONS for m in between)
            if not joined and not any(m.raw == STEP for m in self.marks):
                yield f"what {one.last[0].handle} is to {other.last[0].handle} cannot be checked"

    # ---- numbers

    def _window(self, place: int) -> list[int]:
        """Places of what the number at ``place`` counts: the labels and nouns up to whatever ends its phrase."""
        found = []
        for later in range(place + 1, len(self.marks)):
            if self.marks[later].kind not in {SAYS, NOUN}:
                break
            found.append(later)
        return found

    def _numbered(self, place: int, window: list[int]) -> tuple[list[int], list[str]]:
        """Places of words that are read with the number, and what is wrong with it."""
        mark, (value, unit) = self.marks[place], self.marks[place].value
        says = f'the number in "{shown(self.text[mark.start : mark.end + 30])}" does not agree with the facts'
        those, labels = self._of(mark), {self.marks[each].value for each in window}
        before = self.marks[place - 1].value if place and self.marks[place - 1].kind == SAYS else unit
        if unit == "percent":
            of = [each for each in window if self.marks[each].value in {"done", "tasks", "probability"}]
            return of, self._each(those, lambda e: value in _shares(e), says)
        if before in _OF_ONE and those:
            plain = labels <= {"tasks", "open"}
            return window, self._each(those, lambda e: plain and _OF_ONE[before](e) == value, says)
        if "days" in labels:
            return window, self._lasted(place, labels | {before}, those, says)
        if value == 0 and mark.raw.lower() == "nothing":
            return self._none(place, says)
        if self._is_of(place):
            return [place + 1, *self._window(place + 1)], self._out_of(place, those, says)
        return window, self._counted(mark, value, labels, says) + self._listed(window, labels)

    def _none(self, place: int, says: str) -> tuple[list[int], list[str]]:
        """Of "nothing is late, blocked or due today": each of them is none."""
        used, wrong = list[int](), list[str]()
        for later in range(place + 1, len(self.marks)):
            other = self.marks[later]
            if other.kind == SAYS:
                used.append(later)
                wrong.extend(self._counted(self.marks[place], 0, {other.value}, says))
            elif other.kind != STOP or other.raw.lower() not in {",", "or"}:
                break
        return used, wrong if used else self._counted(self.marks[place], 0, set(), says)

    def _listed(self, window: list[int], labels: set[str]) -> list[str]:
        """Of "2 overdue tasks, including T1 and T2": whether those are of the counted."""
        end = self.marks[window[-1]].end if window else 0
        after = next((group for group in self.groups if group.start >= end), None)
        if not window or after is None or after.projects:
            return []
        if not re.fullmatch(_LISTING, self.text[end : after.start]) or _OWN_CLAUSE.match(self.text[after.end :]):
            return []
        nouns, states = labels & NOUNS.keys(), labels - NOUNS.keys()
        agree = all(states <= entity.says and nouns <= {entity.kind} for entity in after.entities)
        return [] if agree else [f"{after.last[0].handle} is not one of those that are counted before it"]

    def _is_of(self, place: int) -> bool:
        first, second = self.marks[place], self.marks[place + 1] if place + 1 < len(self.marks) else None
        if second is None or second.kind != NUMBER:
            return False
        return re.fullmatch(r" of (?:the |its |their |your )?", self.text[first.end : second.start]) is not None

    def _out_of(self, place: int, those: tuple[Entity, ...], says: str) -> list[str]:
        """Of "2 of 5 tasks done": a goal's progress, or how many of a whole have a property."""
        part, whole = self.marks[place].value[0], self.marks[place + 1].value[0]
        labels = {self.marks[each].value for each in self._window(place + 1)}
        if any(entity.fields.get("tasks") is not None for entity in those):
            agree = self._each(
                those, lambda e: (e.fields.get("done"), e.fields.get("tasks")) == (part, whole), says
            )
            return agree if labels <= {"tasks", "done"} else [says]
        of = {"open"} if "open" in labels else labels & NOUNS.keys() or {"tasks"}
        return self._counted(self.marks[place], part, labels - {"open"}, says) + self._counted(
            self.marks[place], whole, of, says
        )

    def _counted(self, mark: Mark, value: float, labels: set[str], says: str) -> list[str]:
        """A count of the whole, or of the projects that the sentence names."""
        name = COUNTS.get(frozenset(labels))
        if name is None:
            return [f'it is unclear what the number in "{shown(self.text[mark.start : mark.end + 30])}" counts']
        if self._is_had(mark):
            return [f'the facts count nothing of whom "{shown(self.text[mark.start : mark.end + 30])}" is said']
        if self._is_joined(mark):
            return [
                f'it is unclear whether "{shown(self.text[mark.start : mark.end + 30])}" is said of others, too'
            ]
        self.tallies.append(mark.end)
        projects = self._projects(mark)
        scopes = [project.counts for project in projects] if projects else [self.known.counts]
        # A word that is not in the facts is not known to be none.
        return [] if all(name in scope and scope[name] == value for scope in scopes) else [says]

    def _is_had(self, mark: Mark) -> bool:
        """Whether the count is said of an item: "T1 has 3 goals", "it has 3 goals"."""
        before = [group for group in self.groups if group.end <= mark.start]
        those = before[-1].entities if before else self.carried
        between = self.text[before[-1].end if before else 0 : mark.start]
        stopped = not before or any(m.kind == STOP and before[-1].end <= m.start < mark.start for m in self.marks)
        has = _HAS.search(between) and not re.search(r"\b(?:you|there)\b", between, re.IGNORECASE)
        return bool(those and not any(each.is_project for each in those) and (has or not stopped)) and not (
            before and before[-1].projects
        )

    def _is_joined(self, mark: Mark) -> bool:
        """Whether the number is one of several that are spoken of: "T1 and 5 tasks are late"."""
        before = [group for group in self.groups if group.end <= mark.start]
        between = self.text[before[-1].end : mark.start] if before else "."
        return bool(JOINED.match(between)) and not (before[-1].projects and "," in between)

    def _lasted(self, place: int, labels: set[str], those: tuple[Entity, ...], says: str) -> list[str]:
        """Of "3 days late", "in 3 days", "3 days ago", "untouched for 3 days": from their dates to today."""
        mark, today = self.marks[place], self.known.today
        value, head = mark.value[0], self.text[: mark.start].lower()
        tail = self.text[self.marks[place + 1].end :].lower()
        if {"overdue", "behind"} & labels or re.search(r"\bby \Z", head):
            late = {"overdue", *({"behind"} & labels)}
            return self._each(those, lambda e: late <= e.says and value in _days(e, {"due"}, today), says)
        if re.search(r"\bin \Z", head) or re.match(r" (?:left|away|ahead|from now)\b", tail):
            return self._each(those, lambda e: -value in _days(e, {"due", "start"}, today), says)
        if "stale" in labels or re.search(r"\bfor \Z", head):
            return self._each(those, lambda e: value in _days(e, {"changed"}, today), says)
        if re.match(r" ago\b", tail):
            roles = {"done"} if "done" in labels else {"changed"} if "changed" in labels else {"due", "start"}
            return self._each(those, lambda e: value in _days(e, roles, today), says)
        return [says]

    @staticmethod
    def _each(those: tuple[Entity, ...], holds: Callable[[Entity], bool], says: str) -> list[str]:
        return [] if those and all(map(holds, those)) else [says]

    # ---- dates

    def _dated(self, mark: Mark) -> Iterator[str]:
        those = self._of(mark)
        says = f'the date in "{shown(self.text[: mark.end][-40:])}" does not agree with the facts'
        head = self.text[: mark.start].strip().lower()
        past = {"done", "changed", "slipped", "new"} & {other.value for other in self.marks if other.kind == SAYS}
        if mark.value == "today":
            # At the beginning it says when this is written, unless something is said to have happened then.
            theirs = ({day for role, day in e.dates.items() if role in {"due", "start", "done"}} for e in those)
            free = not head and not past
            if not free and not (those and all(self.known.today in days for days in theirs)):
                yield says
            return
        if not those:
            written = self.known.today in mark.value and head in {"", "on", "as of"} and not past
            since = self.known.since in mark.value and re.search(r"\bsince\Z", head)
            if not written and not (since and past):
                yield says
            return
        roles = self._role(mark)
        if not all(set(mark.value) & {day for role, day in e.dates.items() if role in roles} for e in those):
            yield says

    def _role(self, mark: Mark) -> frozenset[str]:
        """What the words before a date say that it is of them; anything where they say nothing."""
        ends = [other.end for other in self.marks if other.end <= mark.start and other.kind in {SUBJECT, DATE}]
        words = self.text[max(ends, default=0) : mark.start].lower()
        found = [(found.end(), roles) for pattern, roles in ROLE_WORDS for found in pattern.finditer(words)]
        return max(found, key=lambda each: each[0])[1] if found else frozenset(ROLES.values())

    # ---- states

    def _said(self, mark: Mark) -> Iterator[str]:
        word = mark.value
        if word == "days":
            yield "it speaks of days and does not say how many"
            return
        items = [group.end for group in self.groups if group.end <= mark.start and not group.projects]
        if max((tally for tally in self.tallies if tally <= mark.start), default=-1) > max(items, default=-1):
            yield f'it is unclear how many of those counted "{shown(mark.raw)}" is said of'
            return
        those = self._of(mark)
        says = f'"{shown(mark.raw)}" does not agree with the facts of whom it is said'
        if not those:
            if not (self._is_attribute(mark) or mark.raw.lower().startswith("next")):
                yield f'it is unclear of how many "{shown(mark.raw)}" is said'
            elif not any(self.known.counts.get(name, 0) > 0 for name in ANYWHERE.get(word, (word,))):
                yield f'"{shown(mark.raw)}" is said of nobody, or the facts count none'
            return
        others = self._object(mark, those) if word in RELATIONS else ()
        if others is None:
            yield f'it is unclear whom "{shown(mark.raw)}" means'
        elif others:
            yield from self._related(mark, those, others)
        elif not all(self._is(entity, mark) for entity in those):
            yield says

    def _is_attribute(self, mark: Mark) -> bool:
        """Whether it says which and not how: "the overdue tasks", and not "the tasks are overdue"."""
        tail = self.text[mark.end :]
        after = next((other for other in self.marks if other.start >= mark.end), None)
        noun = after is not None and after.kind in {NOUN, SAYS} and self.text[mark.end : after.start] == " "
        return noun or re.match(r" (?:work|items?|things?)\b", tail) is not None

    def _is(self, entity: Entity, mark: Mark) -> bool:
        if not entity.is_project:
            return mark.value in entity.says
        nouns = [other.value for other in self.marks if other.kind == NOUN and other.value != PROJECTS]
        if not nouns or mark.value in OF_PROJECTS:
            return mark.value in entity.says and mark.value in OF_PROJECTS
        before = [group.end for group in self.groups if group.end <= mark.start]
        if _IS.search(self.text[max(before, default=0) : mark.start]):
            return False  # of how many of them is not said
        names = (COUNTS.get(frozenset({mark.value, noun})) for noun in nouns)
        return any(entity.counts.get(name, 0) > 0 for name in names if name)

    @staticmethod
    def _related(mark: Mark, those: tuple[Entity, ...], others: tuple[Entity, ...]) -> Iterator[str]:
        """Of "T1 waits for T2" and "T2 unblocks T1": whether the two are so."""
        # A handle of several projects means the one that is so.
        for one, other in product(_by_handle(those), _by_handle(others)):
            waiting, awaited = (one, other) if mark.value == "blocked" else (other, one)
            known = any(
                b.handle in a.fields.get("waits_for", ()) and a.project == b.project
                for a, b in product(waiting, awaited)
            )
            if not known:
                yield f"the facts do not say that {waiting[0].handle} waits for {awaited[0].handle}"

    def _object(self, mark: Mark, those: tuple[Entity, ...]) -> tuple[Entity, ...] | None:
        """Whom the subject waits for or frees: none where nobody is named, None where it is unclear who."""
        tail = self.text[mark.end :]
        after = next((group for group in self.groups if mark.end <= group.start), None)
        before = [group for group in self.groups if group.end <= mark.start and group.entities != those]
        if re.match(r"(?: by| for| on)? (?:it|them|both|this|these|those)\b(?! task)", tail, re.IGNORECASE):
            return before[-1].entities if before else self.carried if self.carried != those else None
        if after and after.entities != those and not re.search(r"[,:;]| and ", tail[: after.start - mark.end]):
            return after.entities
        if mark.raw.lower().endswith((" for", " on", " by")) and not _OBJECT.match(tail):
            return None
        return ()


def _by_handle(those: Iterable[Entity]) -> list[tuple[Entity, ...]]:
    return list(grouped(those, lambda entity: entity.handle).values())


_GOES_ON = re.compile(r" and (?:is|are|was|were|has|have)\b")
"""After "T1 waits for T2": what follows is said of T1 again."""
_SINCE = re.compile(r"\bsince\b", re.IGNORECASE)
_IS = re.compile(r"\b(?:is|are|was|were|be|been)\b", re.IGNORECASE)
_HAS = re.compile(r"\b(?:has|have|had|with|its|their)\b", re.IGNORECASE)
_FIRST = re.compile(r"\bfirst \Z", re.IGNORECASE)
_IT_IS = re.compile(
    r"\b(?:it|this|that|they|both|these|those|which)(?:'s| also| still| now)* ?(?:is|are|was|were)?\b",
    re.IGNORECASE,
)
_DETERMINED = r"(?: (?:the|an?|its|their|these|those|this|that|another|other|one))* "
_OBJECT = re.compile(r" (?:\d|the other|another|other|one|two|three|four|five|six|seven|eight|nine|ten|tasks?)\b")
_LISTING = r"[ ,:(–—-]*(?:(?:including|namely|among them|with|is|are|and)\b[ :]*)*"  # noqa: RUF001
_OWN_CLAUSE = re.compile(
    r" *(?:'s\b|(?:also |still |now )?"
    r"(?:is|are|was|were|has|have|needs?|comes?|stands?|waits?|frees|blocks|starts)\b)"
)
_BARE_NAME = "\ue002[\U000f0000-\U000ffffd](?: ?\\(?[A-Z]+[0-9]+\\)?)?"
_BARE_NAMES = rf"{_BARE_NAME}(?:(?:,|,? and|,? or) {_BARE_NAME})*"
_BARE_NAMED = re.compile(
    rf"\b(?:in|of|from|for|at|on|to|with|by|about|among|including|project|projects)(?: the| your)?(?: projects?)?"
    rf" \(?{_BARE_NAMES}"
    rf"|{_BARE_NAMES}(?:'s\b"
    r"| \(?(?:is|are|was|were|has|have|had|needs?|comes?|stands?|waits?|shows?|ends|starts)\b"
    r"| (?:also|still|now|already) )",
    re.IGNORECASE,
)


def _days(entity: Entity, roles: set[str], today: date) -> set[int]:
    """Days from each date of the entity to today; what lies ahead is negative."""
    return {(today - day).days for role, day in entity.dates.items() if role in roles}


_OF_ONE: Mapping[str, Callable[[Entity], Any]] = {
    "priority": lambda entity: entity.fields.get("priority"),
    "probability": lambda entity: entity.fields.get("probability"),
    "unblocking": lambda entity: entity.fields.get("frees"),
    "blocked": lambda entity: len(entity.fields.get("waits_for") or ()),
}
"""Numbers of one entity that are said after their word: priority 1, unblocks 3 tasks, waits for 2 tasks."""


def _shares(entity: Entity) -> set[float]:
    """Percentages: progress, rounded as people do, and probability."""
    done, tasks, probability = (entity.fields.get(name) for name in ("done", "tasks", "probability"))
    shares = {float(round(100 * done / tasks))} if tasks and done is not None else set()
    return shares | ({round(100 * probability, 6)} if isinstance(probability, int | float) else set())
