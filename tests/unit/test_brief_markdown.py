import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from strategies import FORGERIES, texts

from foreword.text import clean, cut
from prompts.brief_markdown import markdown
from prompts.brief_page import LEAST_LIMIT, LIMIT, page
from prompts.brief_phrases import LONGEST_TITLE, short_names
from prompts.commonmark import escaped

DATA = Path(__file__).parents[1] / "data" / "brief"
TODAY = date(2026, 11, 22)

HOSTILE = (
    *FORGERIES,
    "[click](http://evil.example) and ![image](http://evil.example/x.png)",
    "<img src=x onerror=alert(1)> <b>bold</b> <!-- comment --> <?php ?> <![CDATA[x]]>",
    "www. http:// www.",
    "http://evil.example www.evil.example evil.example ftp://evil.example //evil.example a.b@evil.example",
    "HTTPS://evil.example/a_b?c=d&e=f WWW.EVIL.EXAMPLE mailto:a@evil.example evil.рф münchen.de",
    "<http://evil.example> <a@evil.example> [ref]: http://evil.example",
    "*emphasis* **strong** _under_ __double__ ***all*** ~~gone~~ ~sub~ ==mark== ^sup^",
    "`code` ``more`` ``` ~~~ $math$ $$more$$ ||spoiler||",
    "# heading",
    "## heading ##",
    "> quotation",
    "- item",
    "+ item",
    "* item",
    "1. item",
    "1) item",
    "12345678901. item",
    "===",
    "---",
    "***",
    "| a | b |\n|---|---|",
    "    indented code",
    "```\nfenced\n```",
    "- [ ] task",
    "title\n\n## Overdue (0)\n\n- **forged**: done",
    "trailing backslash \\",
    "\\*escaped\\* \\\\ \\[x\\]",
    "&amp; &#60; &lt;b&gt; &nbsp; &copy R&D AT&T;",
    "**",
    "*",
    "_",
    "!",
    "](",
    "a**: 0 days late (T1)\n- **b",
    "x" * 3000,
    "*" * 3000,
    "[" * 300 + "](" * 300,
    "**Overdue** (0 of 0)",
)
titles = st.one_of(texts, st.sampled_from(HOSTILE))

_TASKS = ("overdue", "blocked", "today", "upcoming", "unblocking", "in_progress", "stale", "changed", "done")
_OWN = ("goals", "milestones", "risks", *_TASKS, "decisions")
_MERGED = ("overdue", "blocked", "today", "upcoming")


def a_document(
    seed: int, *, projects: int, tasks: int = 12, title: Any = None, name: Any = None, listed: int = 5
) -> dict[str, Any]:
    """A document whose numbers agree with each other, of as many projects as asked for. Titles are unique but for
    what ``title`` makes of a number.
    """
    random = Random(seed)
    title = title or (lambda number: f"Thing {number} of many")
    name = name or (lambda number: f"Project {number}")
    sections = [_section(random, at, random.randrange(tasks + 1), title, name, listed) for at in range(projects)]
    everything = {key: [item for each in sections for item in each[1].get(key, ())] for key in _OWN}
    speaking = [section for section, lists in sections if any(lists.values())]
    quiet = [
        {"id": each["id"], "handle": each["handle"], "name": each["name"], "state": "active", "open": 2}
        for each, lists in sections
        if not any(lists.values())
    ]
    merged = {key: _list(everything[key], 10) for key in _MERGED}
    at_risk = [item for key in ("goals", "milestones") for item in everything[key]]
    counts = Counter[str]()
    for section, _ in sections:
        counts.update(section["counts"])
    candidates = [item for item in everything["overdue"] + everything["today"] if not item.get("blocked")]
    newly = everything["overdue"][::3]
    return {
        "schema": 1,
        "user": "u",
        "name": "Maren",
        "date": TODAY.isoformat(),
        "zone": "Europe/Berlin",
        "kind": random.choice(("daily", "return", "asked")),
        "since": "2026-11-21",
        "generated_at": "2026-11-22T06:00:00+00:00",
        "window_from": "2026-11-21T06:00:00+00:00",
        "summary": {"text": title(10**6) * 3, "words": random.choice(("template", "model")), "why": None},
        "totals": {
            "projects": projects,
            **{key: counts[key] for key in (*_TASKS, "tasks", "open", "risks")},
            "goals": {
                "live": counts["goals_behind"],
                "on_track": 0,
                "at_risk": 0,
                "behind": counts["goals_behind"],
            },
            "milestones": {"at_risk": 0, "missed": counts["milestones_missed"]},
        },
        "priorities": [{**item, "reason": title(10**6 + 1)} for item in candidates[:5]],
        "attention": {
            "overdue": merged["overdue"],
            "blocked": merged["blocked"],
            "at_risk": _list(at_risk, 10),
            "risks": _list(everything["risks"], 10),
            "cycles": _list(everything["blocked"][::4], 10),
        },
        "today": merged["today"],
        "upcoming": merged["upcoming"],
        "wins": _list(everything["done"], 10),
        "changes": {
            "since": "2026-11-21",
            "newly_overdue": _list(newly, 10),
            "newly_done": _list(everything["done"], 10),
            "slipped": _list([{**item, "was": "2026-11-20"} for item in everything["upcoming"][::3]], 10),
            "new_risks": _list(everything["risks"][::2], 10),
            "priorities": [
                {**item, "became": became}
                for item, became in zip(
                    everything["done"] + candidates, ("done", "finished", "slipped", "open", "gone"), strict=False
                )
            ],
        },
        "projects": speaking,
        "quiet": {"total": len(quiet), "items": quiet[:40]},
        "hints": [f"{counts['open']} tasks are linked to nothing", title(10**6 + 2)],
        "gone": [title(10**6 + 3)] * random.randrange(8),
    }


def _section(
    random: Random, at: int, tasks: int, title: Any, name: Any, listed: int
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    project = {"id": f"p{at}", "handle": f"PRJ{at}", "name": name(at)}

    def item(kind: str, number: int, **more: Any) -> dict[str, Any]:
        handle = f"{kind[0].upper()}{number}"
        place = {"project": project["handle"], "project_id": project["id"]}
        title_ = title(at * 1000 + number * 10 + ("task", "goal", "milestone", "risk", "decision").index(kind))
        return {"id": f"{at}-{handle}", "handle": handle, "kind": kind, "title": title_, **place, **more}

    lists: dict[str, list[Any]] = {key: [] for key in _OWN}
    for number in range(tasks):
        days = random.randrange(-9, 12)
        task = item("task", number, due=(TODAY + timedelta(days=days)).isoformat())
        if random.random() < 0.2:
            lists["done"].append({**task, "done_on": "2026-11-21", "state": "done"})
            continue
        task |= {"days_late": -days} if days < 0 else {}
        task |= {"blocked": True, "waits_for": ["T1", "T2"], "waits": 5} if random.random() < 0.3 else {}
        task |= {"state": "in_progress"} if random.random() < 0.3 else {}
        task |= {"frees": number} if not task.get("blocked") and number % 3 == 1 else {}
        for key, there in {
            "overdue": days < 0,
            "today": days == 0,
            "upcoming": 0 < days <= 7,
            "blocked": "blocked" in task,
            "in_progress": "state" in task,
            "unblocking": "frees" in task,
            "changed": number % 4 == 0,
        }.items():
            if there:
                lists[key].append(task)
    for number in range(random.randrange(3)):
        lists["goals"].append(item("goal", number, status="behind", done=number, tasks=7))
        lists["milestones"].append(item("milestone", number, status="missed", due="2026-11-20", days_late=2))
        lists["risks"].append(item("risk", number, impact="high", probability="0.6"))
        lists["decisions"].append(item("decision", number, done_on="2026-11-21"))
    counts = {key: len(lists[key]) for key in (*_TASKS, "risks")}
    narrative = {"text": title(at * 1000 + 999), "words": "template", "why": None}
    return {
        **project,
        "state": random.choice(("active", "planning")),
        "next_step": title(at * 1000 + 998),
        "end": "2027-01-08",
        "narrative": narrative,
        "counts": {
            **counts,
            "tasks": tasks,
            "open": tasks - len(lists["done"]),
            "goals_behind": len(lists["goals"]),
            "milestones_missed": len(lists["milestones"]),
        },
        **{key: _list(items, listed) for key, items in lists.items()},
    }, lists


def _list(items: list[Any], most: int) -> dict[str, Any]:
    return {"total": len(items), "items": items[:most]}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Any account, its texts hostile."""
    drawn = draw(st.lists(titles, min_size=1, max_size=8))
    return a_document(
        draw(st.integers(0, 10**6)),
        projects=draw(st.sampled_from((0, 1, 2, 5, 40))),
        tasks=draw(st.sampled_from((0, 3, 12, 60))),
        title=lambda number: drawn[number % len(drawn)],
        name=lambda number: drawn[number % len(drawn)],
    )


def the(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found


def a_huge_account() -> dict[str, Any]:
    """300 projects, up to 60 tasks each."""
    return a_document(7, projects=300, tasks=60)


# ---- what a parser makes of it


def parsed(text: str) -> list[Token]:
    """By a parser that allows everything: HTML, tables, strike-through."""
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)


def shape(tokens: list[Token]) -> list[str]:
    """What there is but text."""
    return [
        token.tag + token.type
        for each in tokens
        for token in (each, *(each.children or ()))
        if token.type not in {"text", "inline"}
    ]


def contents(tokens: list[Token]) -> list[str]:
    """The text of each heading, paragraph and item."""
    return ["".join(child.content for child in token.children or ()) for token in tokens if token.type == "inline"]


def strong(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        inside: list[str] | None = None
        for child in token.children or ():
            if child.type == "strong_open":
                inside = []
            elif child.type == "strong_close" and inside is not None:
                yield "".join(inside)
                inside = None
            elif inside is not None:
                inside.append(child.content)


def laid_out(document: Mapping[str, Any], limit: int = LIMIT) -> tuple[list[str], list[str]]:
    """(every text, every title) of the page, in order."""
    found = page(document, limit)
    figures = [" · ".join(f"{number:,} {label}" for number, label in found.figures)] if found.figures else []
    lines = [found.title, *found.intro]
    below = [
        line for each in found.sections for line in (each.heading, *each.intro, *each.lines, *each.outro)
    ] + list(found.foot)
    said = (
        ["".join(span.text for span in line) for line in lines],
        ["".join(span.text for span in line) for line in below],
    )
    spans = [span.text for line in (*lines, *below) for span in line if span.look == "title"]
    return [*said[0], *figures, *said[1]], spans


def headings(text: str) -> dict[str, tuple[int, int]]:
    """(listed, total) by heading."""
    found = re.findall(r"^#+ (.+) \((?:([\d,]+) of )?([\d,]+)\)$", text, re.MULTILINE)
    return {name: (number(listed or total), number(total)) for name, listed, total in found}


def number(text: str) -> int:
    return int(text.replace(",", ""))


# ---- golden


@pytest.mark.parametrize("name", ["day", "empty", "huge"])
def test_a_brief_reads_as_it_did(name: str) -> None:
    document = a_huge_account() if name == "huge" else the(name)

    assert markdown(document) == (DATA / f"{name}.md").read_text(encoding="utf-8")


# ---- it fits


@pytest.mark.promise("brief.fits")
@given(document=documents(), limit=st.integers(LEAST_LIMIT, LIMIT))
def test_a_brief_is_never_longer_than_its_limit(document: dict[str, Any], limit: int) -> None:
    assert len(markdown(document, limit)) <= limit


@pytest.mark.promise("brief.fits")
@pytest.mark.parametrize(
    "title", ["*" * 3000, "long words " * 400, "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 99]
)
def test_the_largest_account_fits_whatever_its_titles(title: str) -> None:
    document = a_document(1, projects=300, tasks=60, title=lambda _: title, name=lambda _: title)
    document["totals"] |= dict.fromkeys(("open", "tasks", "overdue", "changed"), 10**9)

    assert len(markdown(document)) <= LIMIT
    assert len(markdown(document, LEAST_LIMIT)) <= LEAST_LIMIT


def test_most_of_the_room_is_used() -> None:
    assert len(markdown(a_huge_account())) > 0.9 * LIMIT


@pytest.mark.promise("brief.fits")
@given(document=documents(), limits=st.tuples(*[st.integers(LEAST_LIMIT, LIMIT)] * 2))
def test_a_larger_limit_never_shows_less(document: dict[str, Any], limits: tuple[int, int]) -> None:
    smaller, larger = (page(document, limit) for limit in sorted(limits))

    less, more = (
        Counter(line for each in found.sections for line in (*each.intro, *each.lines)) + Counter(found.intro)
        for found in (smaller, larger)
    )

    assert not less - more


def test_a_limit_too_small_for_the_headings_is_refused() -> None:
    with pytest.raises(ValueError, match=f"at least {LEAST_LIMIT}"):
        markdown(the("day"), LEAST_LIMIT - 1)


def test_what_is_left_out_is_counted() -> None:
    document = a_huge_account()

    text = markdown(document)

    shown = len(re.findall(r"^### .* \(PRJ\d+\)$", text, re.MULTILINE))
    left_out = re.search(
        r"^First those that press most; ([\d,]+) more have something to say\.$", text, re.MULTILINE
    )
    assert left_out is not None
    assert shown + number(left_out[1]) == len(document["projects"])
    assert headings(text)["Projects"] == (shown, len(document["projects"]))


def test_the_most_important_stays() -> None:
    text = markdown(a_huge_account(), LEAST_LIMIT)

    assert "## Do these first\n\n1. **" in text


# ---- numbers


def _totals(document: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in document["totals"].items():
        yield from (
            ((f"{name} {key}", each) for key, each in value.items())
            if isinstance(value, dict)
            else ((name, value),)
        )


WORDS = {
    "projects": "{} project",
    "tasks": "{} task",
    "open": "{} open",
    "overdue": "{} overdue",
    "today": "{} today",
    "upcoming": "{} in the next seven days",
    "blocked": "{} blocked",
    "unblocking": "{} that free",
    "in_progress": "{} in progress",
    "stale": "{} untouched for a week",
    "changed": "{} change",
    "done": "{} tasks? done",
    "wins": "{} win",
    "decisions": "{} decision",
    "risks": "Open risks: {}",
    "goals live": r"Goals:[^.]*\b{} live",
    "goals on_track": r"Goals:[^.]*\b{} on track",
    "goals at_risk": r"Goals:[^.]*\b{} at risk",
    "goals behind": r"Goals:[^.]*\b{} behind",
    "milestones at_risk": r"Milestones:[^.]*\b{} at risk",
    "milestones missed": r"Milestones:[^.]*\b{} missed",
}


@pytest.mark.promise("brief.true-totals")
@given(seed=st.integers(0, 10**6), projects=st.integers(1, 60), tasks=st.sampled_from((0, 2, 12, 60)))
def test_every_total_is_what_the_text_says(seed: int, projects: int, tasks: int) -> None:
    document = a_document(seed, projects=projects, tasks=tasks)

    numbers = markdown(document).split("## In numbers")[1]

    for name, total in _totals(document):
        said = rf"(?<![\d,]){WORDS[name].format(f'{total:,}')}"
        assert bool(re.search(said, numbers)) is (total > 0) or name in {"projects", "tasks", "open"}, name


@pytest.mark.promise("brief.true-totals")
@given(
    seed=st.integers(0, 10**6),
    projects=st.integers(1, 60),
    tasks=st.sampled_from((2, 12, 60)),
    limit=st.integers(LEAST_LIMIT, LIMIT),
)
def test_every_heading_says_how_many_of_how_many_are_listed(
    seed: int, projects: int, tasks: int, limit: int
) -> None:
    document = a_document(seed, projects=projects, tasks=tasks)
    lists = {
        "Overdue": document["attention"]["overdue"],
        "Blocked": document["attention"]["blocked"],
        "Goals and milestones": document["attention"]["at_risk"],
        "Risks": document["attention"]["risks"],
        "Waiting for each other": document["attention"]["cycles"],
        "Today": document["today"],
        "The next seven days": document["upcoming"],
        "Wins": document["wins"],
    }

    text = markdown(document, limit)

    printed = set(re.findall(r"^(?:-|\d\.) \*\*(.+?)\*\*", text, re.MULTILINE))
    for name, found in lists.items():
        listed = sum(item["title"] in printed for item in found["items"])
        assert headings(text).get(name, (0, 0)) == (listed, found["total"]), name


OF_PROJECT = {
    "open": "{} open task",
    **{name: WORDS[name] for name in ("overdue", "today", "upcoming", "blocked", "unblocking", "in_progress")},
    "stale": WORDS["stale"],
    "goals_behind": "{} goals? behind",
    "milestones_missed": "{} milestones? missed",
    "risks": "{} open risk",
    "done": WORDS["done"],
    "changed": WORDS["changed"],
}


@pytest.mark.promise("brief.true-totals")
@given(seed=st.integers(0, 10**6), projects=st.integers(2, 12))
def test_every_count_of_a_project_is_what_its_section_says(seed: int, projects: int) -> None:
    document = a_document(seed, projects=projects, tasks=40)

    text = markdown(document)

    for project in document["projects"]:
        section = re.search(rf"\({project['handle']}\)\n(.*?)(?=\n##|\Z)", text, re.DOTALL)
        if section is None:
            continue
        (said,) = re.findall(r"^(?:In planning, )?[\d,]+ open tasks?\b.*", section[1], re.MULTILINE)
        counts = {name: n for name, n in project["counts"].items() if name != "tasks" and (n or name == "open")}
        assert all(
            re.search(rf"(?<![\d,]){OF_PROJECT[name].format(f'{n:,}')}", said) for name, n in counts.items()
        )
        numbers = re.findall(r"(?<![\d,])[\d,]*\d", said.split(" Ends ")[0])
        assert sorted(map(number, numbers)) == sorted(counts.values())


@pytest.mark.promise("brief.true-totals")
@given(seed=st.integers(0, 10**6), projects=st.integers(2, 12), limit=st.integers(LEAST_LIMIT, LIMIT))
def test_a_project_says_how_much_of_what_is_open_is_not_listed(seed: int, projects: int, limit: int) -> None:
    document = a_document(seed, projects=projects, tasks=40)

    text = markdown(document, limit)

    lines = re.findall(r"^(?:-|\d\.) (\*\*.+|(?:Newly|Moved|New).+)", text, re.MULTILINE)
    named = {title for line in lines for title in re.findall(r"\*\*(.+?)\*\*", line)}
    for project in document["projects"]:
        section = re.search(rf"\({project['handle']}\)\n(.*?)(?=\n##|\Z)", text, re.DOTALL)
        for kind in ("goal", "milestone", "risk"):
            known = {each["title"] for each in project[f"{kind}s"]["items"]}
            missing = project[f"{kind}s"]["total"] - len(known & named)
            said = re.search(rf"Not listed:[^.]*?([\d,]+) {kind}s?\b", section[1]) if section else None
            assert section is None or (number(said[1]) if said else 0) == missing


@pytest.mark.promise("brief.once")
@given(seed=st.integers(0, 10**6), projects=st.integers(1, 30), tasks=st.sampled_from((2, 12, 60)))
def test_no_item_has_two_lines(seed: int, projects: int, tasks: int) -> None:
    text = markdown(a_document(seed, projects=projects, tasks=tasks))

    printed = Counter(re.findall(r"^(?:-|\d\.) \*\*(.+?)\*\*", text, re.MULTILINE))

    assert [title for title, times in printed.items() if times > 1] == []


def test_what_is_overdue_and_blocked_stands_under_blocked() -> None:
    text = markdown(the("day"))

    overdue, blocked = re.search(r"### Overdue(.*?)### Blocked(.*?)###", text, re.DOTALL).groups()  # type: ignore[union-attr]
    assert overdue.startswith(" (4)\n")
    assert 'Plus 2 under "Do these first" and 1 under "Blocked".' in overdue
    assert "**Install the ramp and its handrail**: 1 day late, waits for T12, newly overdue" in blocked


# ---- other people's text


@pytest.mark.promise("brief.inert")
@given(document=documents())
def test_no_text_becomes_markup(document: dict[str, Any]) -> None:
    said, named = laid_out(document)

    tokens = parsed(markdown(document))

    assert contents(tokens) == said
    assert list(strong(tokens)) == named
    assert set(shape(tokens)) <= {
        *(f"h{level}heading_{end}" for level in (1, 2, 3) for end in ("open", "close")),
        *("pparagraph_open", "pparagraph_close", "liist_item_open", "lilist_item_open", "lilist_item_close"),
        *("olordered_list_open", "olordered_list_close", "ulbullet_list_open", "ulbullet_list_close"),
        *("strongstrong_open", "strongstrong_close", "text_special"),
    }


@pytest.mark.promise("brief.inert")
@given(document=documents())
def test_a_brief_has_the_lists_and_headings_of_its_layout(document: dict[str, Any]) -> None:
    sections = page(document).sections

    tokens = parsed(markdown(document))

    assert Counter(token.type for token in tokens)["list_item_open"] == sum(len(each.lines) for each in sections)
    assert [token.tag for token in tokens if token.type == "heading_open"] == [
        "h1",
        *(f"h{each.level}" for each in sections),
    ]


@pytest.mark.promise("brief.inert")
@pytest.mark.parametrize("title", HOSTILE)
def test_a_hostile_title_is_shown_as_it_is(title: str) -> None:
    document = the("day")
    document["priorities"] = [{**document["priorities"][0], "title": title}]

    tokens = parsed(markdown(document))

    assert next(strong(tokens)) == (cut(clean(title), LONGEST_TITLE) or "(untitled)")


@pytest.mark.promise("brief.inert")
@given(document=documents())
def test_nothing_that_linkifiers_look_for_is_left_bare(document: dict[str, Any]) -> None:
    text = markdown(document)

    assert re.search(r"(?<!\\)(?:://|@\w|(?<=\S)\.[^\W_])|(?i:www\.)|(?<![\\:])//", text) is None


@given(text=titles)
def test_escaping_is_undone_by_a_parser(text: str) -> None:
    said = clean(f"x {text} x")

    assert contents(parsed(escaped(said))) == [said]


@pytest.mark.parametrize(
    "plain", ["Call Ann (again) at 10:30 - it's 50% done!", "R&D, v2 + v3 = v5; part 1. Or 2?"]
)
def test_ordinary_titles_are_not_cluttered(plain: str) -> None:
    assert escaped(plain) == plain


# ---- words


def test_an_empty_account_is_told_so_and_nothing_else() -> None:
    text = markdown(the("empty"))

    assert "You have no project in planning or under way" in text
    assert "##" not in text


def test_a_day_without_anything_says_so_once() -> None:
    document = the("empty")
    document["totals"]["projects"] = 1
    document["changes"]["since"] = "2026-11-21"

    by_template = markdown(document)
    document["summary"]["words"] = "model"
    by_a_model = markdown(document)

    for text in (by_template, by_a_model):
        assert "Nothing is overdue, blocked or at risk." in text
        assert text.count("Nothing is due") == 1
        assert "Nothing is due today or in the next seven days." in text
    new = "Nothing new: no task became overdue, was done or moved."
    assert new in by_a_model
    assert new not in by_template  # whose summary says so


def test_an_empty_day_in_a_full_week_says_so() -> None:
    document = the("day")
    document["today"] = {"total": 0, "items": []}

    text = markdown(document)

    assert "Nothing is due today.\n" in text
    assert "The next seven days" in text


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"due": "2026-11-22"}, "due today"),
        ({"due": "2026-11-23"}, "due tomorrow"),
        ({"due": "2026-11-26"}, "due Thu 26 Nov"),
        ({"due": "2027-01-01"}, "due Fri 1 Jan 2027"),
        ({"due": "2026-11-21", "days_late": 1}, "1 day late"),
        ({"due": "2026-11-19", "days_late": 3}, "3 days late"),
        ({"due": "2025-11-22", "days_late": 365}, "365 days late"),
        ({"due": "2025-11-21", "days_late": 366}, "late since Nov 2025"),
        ({"due": "2002-03-24", "days_late": 9009}, "late since Mar 2002"),
        ({"due": "44 BC", "days_late": 9009}, "9,009 days late"),
        ({"kind": "goal", "status": "draft", "due": "2026-11-19"}, "goal, a draft, was due Thu 19 Nov"),
        ({"due": "soon\n# now"}, "due soon # now"),
        ({"start": "2026-11-22", "due": "2026-11-24"}, "starts today, due Tue 24 Nov"),
        ({"frees": 1}, "frees 1 task"),
        ({"frees": 2, "state": "in_progress"}, "frees 2 tasks, in progress"),
        ({"blocked": True}, "blocked"),
        ({"blocked": True, "waits_for": ["T29"]}, "waits for T29"),
        ({"blocked": True, "waits_for": ["T1", "T2", "T3"], "waits": 9}, "waits for T1, T2, T3 and 6 more"),
        ({"kind": "goal", "status": "behind", "done": 3, "tasks": 7}, "goal, behind, 3 of 7 tasks done"),
        ({"kind": "milestone", "status": "missed", "days_late": 2}, "milestone, missed, 2 days late"),
        ({"kind": "risk", "impact": "high", "probability": 0.5}, "risk, high impact, 50% likely"),
        ({"kind": "risk", "impact": "high", "probability": "NaN"}, "risk, high impact"),
        (
            {"kind": "risk", "impact": "high", "probability": 1, "state": "occurred"},
            "risk, high impact, has occurred",
        ),
        ({"days_late": 2, "done_on": "2026-11-20"}, "2 days late"),
    ],
)
def test_facts_in_words(facts: dict[str, Any], said: str) -> None:
    document = the("day")
    item = {"id": "x", "handle": "T1", "kind": "task", "title": "It", "project": "PRJ1", "project_id": "p1"}
    document["upcoming"] = _list([item | facts], 10)

    text = markdown(document).replace("\\", "")

    assert f"- **It**: {said} (Net Loft Library, T1)\n" in text


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("task", "done yesterday"),
        ("goal", "goal, achieved yesterday"),
        ("milestone", "milestone, reached yesterday"),
    ],
)
def test_what_is_finished_in_words(kind: str, said: str) -> None:
    document = the("day")
    item = {"id": "x", "handle": "T1", "kind": kind, "title": "It", "project": "PRJ1", "project_id": "p1"}
    document["wins"] = _list([item | {"due": "2026-11-20", "days_late": 2, "done_on": "2026-11-21"}], 10)

    assert f"- **It**: {said} (Net Loft Library, T1)\n" in markdown(document)


def test_where_there_is_one_project_its_name_is_not_repeated() -> None:
    document = the("day")
    document["totals"]["projects"] = 1
    document["projects"], document["quiet"] = document["projects"][:1], _list([], 1)

    text = markdown(document)

    assert "1. **Order the steel for the ramp**: 3 days late, frees 2 tasks, priority 1 (T12)" in text
    assert text.count("Net Loft Library") == 1


def test_under_today_it_is_not_said_again_that_something_is_due_today() -> None:
    assert "- **Replace the two dead lamps at the pier head** (North pier, T11)\n" in markdown(the("day"))
    assert "- **Agree the carol evening with the choir**: starts today, due Sat 28 Nov (" in markdown(the("day"))


@pytest.mark.parametrize(
    ("text", "words", "there"), [("x", "template", 0), ("x", "model", 1), ("", "template", 1)]
)
def test_the_numbers_stand_at_the_top_unless_a_template_says_them(text: str, words: str, there: int) -> None:
    document = the("day") | {"summary": {"text": text, "words": words, "why": None}}

    figures = "41 open tasks \u00b7 4 overdue \u00b7 3 today \u00b7 6 in the next seven days \u00b7 3 blocked\n"

    assert markdown(document).count(figures) == there


@pytest.mark.parametrize(
    ("became", "said"),
    [
        (["open"] * 5, "None of its 5 priorities is done yet"),
        (["open"], "Its priority is not done yet"),
        (["done"], "Its priority: **A** done"),
        (
            ["done", "open", "slipped"],
            "Its priorities (1 of 3 done): **A** done, **C** moved to tomorrow, the other one is still open",
        ),
        (
            ["gone", "open", "open"],
            "Its priorities (0 of 3 done): **A** no longer there, the other 2 are still open",
        ),
        (["done", "finished"], "Its priorities (1 of 2 done): **A** done, **B** closed"),
    ],
)
def test_of_yesterdays_priorities_those_are_named_that_changed(became: list[str], said: str) -> None:
    document = the("day")
    document["changes"]["priorities"] = [
        {"id": title, "handle": "T1", "title": title, "project_id": "p1", "due": "2026-11-23", "became": fate}
        for title, fate in zip("ABCDE", became, strict=False)
    ]

    assert f"\n- {said}\n" in markdown(document)


def test_what_changed_is_named_in_short_where_it_has_a_line_elsewhere() -> None:
    text = markdown(the("day"))

    assert '- Newly overdue (1): "Install the ramp and its handrail" (T14)\n' in text
    assert "- Moved (1): **Book the divers** from Tue 24 Nov to Tue 1 Dec (North pier, T8)\n" in text


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["Loft: the library", "Pier - north", "Winter \u2013 evenings"], ["Loft", "Pier", "Winter"]),
        (["Loft: one", "loft: two"], ["Loft: one", "loft: two"]),
        (["Loft: one", "Loft"], ["Loft: one", "Loft"]),
        (["UI: all of the windows and doors", ": nameless"], ["UI: all of the windows and\u2026", ": nameless"]),
        (["Re-roofing 10:30", ""], ["Re-roofing 10:30", ""]),
        (["A project of many words without a subtitle"], ["A project of many words wit\u2026"]),
    ],
)
def test_names_of_projects_are_short_as_long_as_they_are_clear(names: list[str], short: list[str]) -> None:
    assert list(short_names({str(at): name for at, name in enumerate(names)}).values()) == short


def test_drafts_take_no_line_of_a_project() -> None:
    document = the("day")
    document["projects"][2]["goals"]["items"][0]["status"] = "draft"

    assert "Thirty people at each winter evening" in markdown(the("day"))
    assert "Thirty people at each winter evening" not in markdown(document)


def test_a_brief_after_an_absence_says_why_it_comes() -> None:
    assert "You have been away" in markdown(the("day") | {"kind": "return"})


def test_words_of_a_model_are_declared() -> None:
    document = the("day")
    assert "A model worded" not in markdown(document)

    document["projects"][1]["narrative"]["words"] = "model"

    assert "A model worded parts of this" in markdown(document)


@pytest.mark.parametrize(
    ("made", "zone", "said"),
    [
        ("2026-11-22T06:00:04+00:00", "America/New_York", "As of 01:00, America/New_York."),
        ("2026-11-22T06:00:04", "UTC", "As of 06:00, UTC."),
        ("2026-11-22T06:00:04+00:00", "../Nowhere", "As of 06:00, UTC."),
    ],
)
def test_the_clock_is_the_reader_s(made: str, zone: str, said: str) -> None:
    document = the("day") | {"generated_at": made, "zone": zone}

    assert markdown(document).replace("\\", "").rstrip().endswith(said)


def test_one_malformed_date_spoils_one_line() -> None:
    document = the("day") | {"generated_at": "never"}
    document["changes"]["since"] = "44 BC"
    document["today"]["items"][1]["due"] = "someday"

    text = markdown(document)

    assert "## Since the brief of 44 BC\n" in text
    assert "at the pier head**: due someday (" in text
    assert "As of" not in text


def test_the_same_document_gives_the_same_text() -> None:
    assert markdown(a_huge_account()) == markdown(a_huge_account())
