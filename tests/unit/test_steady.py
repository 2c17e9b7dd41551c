"""A steady text begins as before, says what is new behind it, and never exceeds its budget."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from strategies import TODAY, a_goal, a_hostile_project, a_project, a_task, drafted, handles_of, rendered, uid

from foreword.bundle import render
from foreword.lines import Line, printed
from foreword.rows import ProjectRows
from foreword.steady import Steady, base_budget, begun, continued
from foreword.tokens import count

BUDGET = 1500
THEN, NOW = "2026-11-01 00:00:00+00", f"{TODAY} 10:00:00+00"

Lines = tuple[list[Line], list[Line]]


def lines_of(rows: ProjectRows) -> Lines:
    content = rendered(rows)
    return (
        printed(content.lines, content.always, base_budget(BUDGET)),
        printed(content.lines, content.always, 3000),
    )


def the_loft(late: str = "in_progress", touched: str = THEN, *more: str) -> ProjectRows:
    tasks = [a_task(f"t{n}", title=f"Task {n}", state_key="todo", updated_at=THEN) for n in range(8)]
    tasks.append(a_task("late", title="Late one", state_key=late, due_at=THEN, updated_at=touched))
    tasks += [a_task(name, title=name, state_key="todo", updated_at=NOW) for name in more]
    return a_project(tasks=tasks, goals=[a_goal("g", name="Open the doors", updated_at=THEN)])


def start(rows: ProjectRows) -> Steady:
    return begun("p", *lines_of(rows))


def after(before: Steady, rows: ProjectRows, budget: int = BUDGET) -> Steady | None:
    return continued(before, *lines_of(rows), budget)


@pytest.mark.promise("steady.prefix")
def test_nothing_new_changes_nothing() -> None:
    before = start(the_loft())
    found = after(before, the_loft())
    assert found is not None
    assert (found.text, found.tokens) == (before.text, before.tokens)


@pytest.mark.promise("steady.prefix", "steady.news")
def test_what_changed_is_appended_and_the_counts_close() -> None:
    before = start(the_loft())
    found = after(before, the_loft("done", NOW))
    assert found is not None
    assert found.text.startswith(before.text)
    told = found.text.removeprefix(before.text).splitlines()
    assert told[0] == "## since then: a later line replaces an earlier one"
    assert '"Late one" done changed' in told[1]
    assert any(line.startswith("tasks: 9, ") and "overdue: 0" in line for line in told[2:])
    assert any("changed since yesterday: 1" in line for line in told[2:])


@pytest.mark.promise("steady.prefix")
def test_what_was_appended_stays_where_it_is() -> None:
    first = after(start(the_loft()), the_loft("blocked", NOW))
    assert first is not None
    second = after(first, the_loft("done", NOW, "new one"))
    assert second is not None
    assert second.text.startswith(first.base + first.appended)
    assert second.appended.count('"Late one"') == 2
    assert second.appended.count('"new one"') == 1
    assert second.closing.count("tasks: ") == 1


@pytest.mark.promise("steady.news")
def test_what_is_gone_is_named() -> None:
    rows = the_loft()
    left = [row for row in rows.entities["task"] if row[0] != uid("late")]
    before = start(rows)
    handle = next(line.split(" ")[0] for line in before.text.splitlines() if '"Late one"' in line)
    # Handles are stored, and so stay what they were: those of the strategies are numbered anew.
    kept = drafted(replace(rows, entities={**rows.entities, "task": left}))
    content = render(kept, handles_of(drafted(rows)), count)
    fresh = printed(content.lines, content.always, base_budget(BUDGET))
    every = printed(content.lines, content.always, 3000)
    found = continued(before, fresh, every, BUDGET)
    assert found is not None
    assert f"no longer listed here: {handle}\n" in found.text
    again = continued(found, fresh, every, BUDGET)
    assert again is not None
    assert again.text == found.text


@pytest.mark.promise("steady.budget")
def test_a_text_that_is_full_is_begun_anew() -> None:
    before: Steady | None = start(the_loft())
    rounds = 0
    while before is not None:
        assert count(before.text) <= before.tokens <= BUDGET
        rounds += 1
        assert rounds < 400
        before = after(before, the_loft("todo" if rounds % 2 else "blocked", NOW))
    assert rounds > 5


@pytest.mark.promise("steady.budget")
@pytest.mark.parametrize("seed", range(6))
def test_hostile_projects_never_exceed_the_budget(seed: int) -> None:
    before: Steady | None = start(a_hostile_project(seed))
    for other in (seed + 1, seed + 2, seed):
        if before is None:
            before = start(a_hostile_project(other))
        found = after(before, a_hostile_project(other))
        if found is not None:
            assert found.text.startswith(before.base + before.appended)
            assert count(found.text) <= found.tokens <= BUDGET
        before = found


@pytest.mark.promise("steady.news")
@pytest.mark.parametrize(
    ("change", "news"),
    [
        (lambda: the_loft("in_progress", THEN), False),
        (lambda: the_loft("in_progress", NOW), False),  # touched, and nothing else to say of it
        (lambda: the_loft("blocked", NOW), True),
    ],
)
def test_a_line_that_only_says_more_or_less_is_no_news(change: Callable[[], ProjectRows], *, news: bool) -> None:
    found = after(start(the_loft()), change())
    assert found is not None
    assert ('"Late one"' in found.appended) is news


def test_the_heading_counts_what_it_is_said_to_count() -> None:
    from foreword import steady

    assert count(steady._SINCE.text) == steady._SINCE.tokens
    named = [f"{letters}{number}" for letters in ("T", "DOC", "PRJ", "ABC") for number in (1, 47, 4711, 10**17)]
    for name in named:
        assert count(f" {name}") <= steady._most_tokens(name)
    line = f"{steady._GONE} {' '.join(named)}\n"
    assert count(line) <= steady._GONE_TOKENS + sum(map(steady._most_tokens, named))
