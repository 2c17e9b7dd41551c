"""A project's bundle: its JSON, and its text at any budget, read by a parser that knows the grammar only."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    FORGERIES,
    PROJECT_ID,
    TODAY,
    UTC,
    a_big_project,
    a_document,
    a_goal,
    a_hostile_project,
    a_milestone,
    a_plan,
    a_project,
    a_risk,
    a_row,
    a_task,
    an_edge,
    drafted,
    handles_of,
    hostile_cells,
    projects,
    reading,
    rendered,
    shuffled,
    uid,
    written,
)

from foreword.bundle import Content, render
from foreword.draft import Draft, completed
from foreword.kinds import KINDS
from foreword.lines import LONGEST_LINE, fit, is_line
from foreword.rows import ProjectRows
from foreword.text import clean
from foreword.tokens import count

ROOT = Path(__file__).parents[2]

budgets = st.integers(250, 4000)
TALLY = ("total", "open", "overdue", "due today", "due in 7 days", "blocked", "in progress", "unblocking others")
rarely_first = [
    *("goals", "requirements", "plans", "milestones", "documents", "outputs"),
    *("decisions", "insights", "risks", "signals", "tasks"),
]


# ---- an independent parser of the text: quotation marks, our own words, handles, dates and numbers

HANDLE = r"(?:PRJ|DOC|[TGPMRDQOSI])[1-9][0-9]*"
DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
VALUE = r"(?:\"[^\"]*\"|[A-Za-z0-9_][A-Za-z0-9_.+-]*)"
HANDLES = rf"{HANDLE}(?: {HANDLE})*(?: \+[0-9]+)?"
LINKS = ("waits for", "plan", "goal", "task")
PART = "|".join(
    [
        *(rf"{word} {HANDLES}" for word in LINKS),
        *(rf"{word} {DAY}" for word in ("start", "due", "done", "target", "achieved", "on")),
        *(rf"{word} {VALUE}" for word in ("impact", "probability", "outcome")),
        r"[0-9]+/[0-9]+ tasks done",
        rf"p{VALUE}",
        "unlinked",
        VALUE,
    ]
)
FACT = rf"(?:state|type|stage|scale|context) {VALUE}"
FORMS = {
    "name": r'# project "[^"]*"',
    "facts": rf"(?:state unset|{FACT}(?:, {FACT})*), from (?:{DAY}|unset) to (?:{DAY}|unset)",
    "step": r'(?:next step|then|about) "[^"]*"',
    "context": r"context document DOC[1-9][0-9]*",
    "coverage": r"total(?:/direct)?(?:/unlinked)?: [a-z0-9 /,]+",
    "changed": rf"## changed since {DAY}: [0-9]+",
    "latest": rf"latest {HANDLE}(?: {HANDLE})*(?: and [0-9]+ more)?",
    "heading": r"## (?P<plural>[a-z]+): (?P<counts>[0-9]+ total(?:, [0-9]+ [a-z0-9 ]+)*)",
    "entity": rf'(?P<handle>{HANDLE}) "(?P<title>[^"]*)"(?P<parts>(?: (?:{PART}))*)',
    "as of": rf"as of {DAY}",
}


@dataclass(frozen=True)
class Said:
    """A line as a reader takes it: what it is, and the parts of it that matter."""

    form: str
    line: str
    parts: Mapping[str, str]

    @property
    def links(self) -> dict[str, tuple[list[str], int]]:
        """For each kind of link, the handles and how many there are in all."""
        found = {}
        unquoted = re.sub(r'"[^"]*"', '""', self.parts["parts"])
        for word, listed in re.findall(rf" ({'|'.join(LINKS)}) ({HANDLES})", unquoted):
            names = re.findall(HANDLE, listed)
            more = re.search(r"\+([0-9]+)$", listed)
            found[word] = (names, len(names) + int(more[1] if more else 0))
        return found


def parsed(text: str) -> list[Said]:
    """Every line of a text as exactly one of the forms; anything else is a forgery."""
    said = []
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        fits = {form: found for form, pattern in FORMS.items() if (found := re.fullmatch(pattern, line))}
        assert len(fits) == 1, (fits.keys(), line)
        ((form, found),) = fits.items()
        said.append(Said(form, line, found.groupdict()))
    return said


def outside_quotes(line: str) -> set[str]:
    """Handles that a line names in our own words."""
    return set(re.findall(rf"\b{HANDLE}\b", re.sub(r'"[^"]*"', '""', line)))


# ---- helpers


def text_of(content: Content, budget: int) -> str:
    return fit(content.lines, content.always, budget).text


def lights_of(content: Content) -> dict[str, Mapping[str, Any]]:
    return {light["handle"]: light for table in content.data["slices"].values() for light in table}


def label_of(light: Mapping[str, Any]) -> str:
    kind = next(kind for kind in KINDS.all if re.fullmatch(rf"{kind.handle}[0-9]+", light["handle"]))
    return clean(str(light.get(kind.label, ""))).replace('"', "'") or "(untitled)"


hostile = pytest.mark.parametrize("seed", range(12))


# ---- nothing is forged


@given(projects(), budgets)
@settings(max_examples=200)
@pytest.mark.promise("lines.unforgeable", "lines.additive")
def test_every_line_of_any_project_is_one_of_our_forms(rows: ProjectRows, budget: int) -> None:
    content = rendered(rows)
    text = text_of(content, budget)

    said = parsed(text)

    assert all(is_line(f"{each.line}\n") for each in said)
    forms = [each.form for each in said]
    assert [forms.count(form) for form in ("name", "facts", "coverage", "changed", "as of")] == [1] * 5
    assert all(forms.count(form) <= 1 for form in ("context", "latest"))


def check_unforged(content: Content, budget: int) -> None:
    """Sections, the handle at each line's start and every handle outside quotation marks are those of the data."""
    lights = lights_of(content)
    handle_of = content.data["handles"]
    said = parsed(text_of(content, budget))
    entities = [each for each in said if each.form == "entity"]
    sections = {each.parts["plural"] for each in said if each.form == "heading"}
    shown = {
        plural
        for plural, table in content.data["slices"].items()
        for light in table
        if light["handle"] in {each.parts["handle"] for each in entities}
    }
    standing = {"tasks"} - {KINDS.by_name[kind].plural for kind in content.data["coverage"]["absent"]}
    assert sections == shown | standing
    for each in entities:
        light = lights[each.parts["handle"]]
        title = each.parts["title"]
        assert label_of(light).startswith(title.removesuffix("…"))
        named = {
            "waits for": light.get("waits_for", []),
            "plan": light.get("plan_ids", []),
            "goal": light.get("goal_ids", light.get("linked_goal_ids", [])),
            "task": light.get("linked_task_ids", []),
        }
        links = {word: ids for word, ids in named.items() if ids}
        assert each.links.keys() == links.keys()
        for word, (names, total) in each.links.items():
            assert names == [handle_of[i] for i in links[word][: len(names)]]
            assert total == len(links[word])
        assert outside_quotes(each.line) == {
            light["handle"],
            *(n for names, _ in each.links.values() for n in names),
        }
        assert each.parts["parts"].endswith(" unlinked") is not light["direct_edge"]
    recent = [entity["handle"] for entity in content.data["recent"]["entities"]]
    for each in said:
        if each.form == "latest":
            assert re.findall(HANDLE, each.line) == recent
        elif each.form == "context":
            assert outside_quotes(each.line) == {handle_of[content.data["header"]["context_document_id"]]}
        elif each.form != "entity":
            assert outside_quotes(each.line) == set()


@given(projects(), budgets)
@settings(max_examples=200)
@pytest.mark.promise("lines.unforgeable")
def test_no_text_forges_a_section_or_a_handle(rows: ProjectRows, budget: int) -> None:
    check_unforged(rendered(rows), budget)


@hostile
@pytest.mark.promise("lines.unforgeable")
def test_no_text_of_a_large_hostile_project_forges_a_section_or_a_handle(seed: int) -> None:
    check_unforged(rendered(a_hostile_project(seed)), 3000)


@pytest.mark.parametrize("forgery", FORGERIES, ids=range(len(FORGERIES)))
@pytest.mark.promise("lines.unforgeable")
def test_a_forgery_in_every_place_at_once_changes_no_count_and_no_section(forgery: str) -> None:
    def a_copy(text: str) -> ProjectRows:
        state = text[:61]
        return a_project(
            project={
                "name": text,
                "state_key": state,
                "type_key": state,
                "next_step_short": text,
                "description": text,
            },
            tasks=[a_task(f"t{n}", title=text, state_key=state, type_key=state) for n in range(3)],
            goals=[a_goal("g", name=text, state_key=state)],
            risks=[a_risk("r", title=text, impact=state, state_key=state)],
            signals=[a_row("signal", uid("s"), channel=state, payload_summary=text)],
            edges=[an_edge("project", "has_task", "t0"), an_edge("t0", "depends_on", "t1")],
        )

    hostile, plain = parsed(written(a_copy(forgery)).text), parsed(written(a_copy("plain")).text)

    ours = [each.line for each in plain if each.form not in {"entity", "name", "facts", "step"}]
    assert [each.line for each in hostile if each.form not in {"entity", "name", "facts", "step"}] == ours
    assert [e.parts["handle"] for e in hostile if e.form == "entity"] == ["G1", "R1", "S1", "T1", "T2", "T3"]


# ---- budgets


@given(projects(), budgets)
@settings(max_examples=200)
@pytest.mark.promise("lines.budget")
def test_a_text_of_any_project_is_within_any_budget(rows: ProjectRows, budget: int) -> None:
    content = rendered(rows)

    fitted = fit(content.lines, content.always, budget)

    assert count(fitted.text) == fitted.tokens <= budget


@hostile
@pytest.mark.promise("lines.budget", "lines.monotone")
def test_a_large_hostile_project_fits_every_budget_and_a_larger_one_loses_nothing(seed: int) -> None:
    content = rendered(a_hostile_project(seed))
    before: set[str] = set()

    for budget in range(250, 4001, 50):
        fitted = fit(content.lines, content.always, budget)
        lines = set(fitted.text.splitlines())
        assert fitted.tokens <= budget
        assert before <= lines
        before = lines


@given(projects(), budgets, st.integers(0, 500))
@pytest.mark.promise("lines.monotone")
def test_a_larger_budget_loses_no_line(rows: ProjectRows, budget: int, more: int) -> None:
    content = rendered(rows)

    assert set(text_of(content, budget).splitlines()) <= set(text_of(content, budget + more).splitlines())


@given(projects())
@settings(max_examples=200)
@pytest.mark.promise("lines.budget")
def test_no_entity_takes_more_than_a_lines_share_and_some_of_its_title_is_there(rows: ProjectRows) -> None:
    content = rendered(rows)

    for line in content.lines:
        if re.match(rf'{HANDLE} "', line.text):
            assert line.tokens <= LONGEST_LINE
            assert not re.match(rf'{HANDLE} "…"', line.text) or len(clean(line.text)) < 200
    assert content.overview.tokens <= LONGEST_LINE


def with_huge_counts(draft: Draft) -> Draft:
    """The draft of a project with six digits of everything, all of it in every bucket."""
    ids = [str(n) for n in range(100_000)]
    buckets: Any = {name: frozenset(ids) for name in draft.buckets.__slots__ if name != "waits_for"}
    huge = dict.fromkeys(("total", "direct", "unlinked", "reachable", "orphan"), 999_999)
    return replace(
        draft,
        rows=replace(draft.rows, entities={"task": [(entity,) for entity in ids]}),
        buckets=replace(draft.buckets, **buckets),
        coverage={kind.plural: huge for kind in draft.kinds.entities},
        graph=replace(draft.graph, dangling=999_999, foreign=999_999),
    )


@pytest.mark.promise("lines.budget", "lines.counted")
def test_the_header_fits_the_smallest_budget_whatever_the_counts_and_names() -> None:
    huge = with_huge_counts(drafted(a_project()))

    for seed in range(10):
        cells = hostile_cells(KINDS.project, Random(seed))
        draft = replace(huge, rows=replace(huge.rows, project=(PROJECT_ID, *cells)))
        content = render(draft, handles_of(draft), count)
        fitted = fit(content.lines, content.always, 250)
        assert fitted.tokens <= 250
        assert "100000 unblocking others" in fitted.text
        assert "insights 999999" in fitted.text


@pytest.mark.promise("lines.budget", "build.kind")
def test_a_registry_of_thirty_kinds_with_huge_counts_still_fits_the_smallest_budget() -> None:
    risk = KINDS.by_name["risk"]
    more = [
        replace(
            risk,
            name=f"thing{letter}",
            plural=f"things{letter}",
            table=f"onto_things_{letter}",
            handle=f"X{letter}",
        )
        for letter in "ABCDEFGHIJKLMNOPQRS"
    ]
    kinds = KINDS.extended(*more)
    huge = with_huge_counts(drafted(a_project(kinds=kinds), kinds=kinds))

    content = render(huge, handles_of(huge), count)

    fitted = fit(content.lines, content.always, 250)
    assert fitted.tokens == count(fitted.text) <= 250
    assert next(line for line in fitted.text.splitlines() if line.startswith("total: ")).endswith("…")


@pytest.mark.parametrize(
    "char", ["\U00010000", "\u0bb9", "\ufdfa", "\u26f7", "\U0001f9d1\u200d", "x ", "\U0010ffff"]
)
@pytest.mark.promise("lines.budget")
def test_a_project_of_nothing_but_expensive_characters_fits_the_smallest_budget(char: str) -> None:
    cells = {f.name: (char * 200)[: f.cut + 1] for f in KINDS.project.light if f.cut}
    rows = a_project(project=cells, tasks=[a_task(title=char * 200, state_key=(char * 61)[:61])])

    fitted = written(rows, 250)

    assert fitted.tokens == count(fitted.text) <= 250
    assert {"name", "facts", "coverage", "heading", "as of"} <= {each.form for each in parsed(fitted.text)}


# ---- what the text says


@given(projects())
@pytest.mark.promise("lines.order")
def test_sections_run_from_stable_to_volatile_in_handle_order(rows: ProjectRows) -> None:
    said = parsed(text_of(rendered(rows), 4000))

    headings = [each.parts["plural"] for each in said if each.form == "heading"]
    assert headings == [plural for plural in rarely_first if plural in headings]
    numbers = [
        (each.parts["handle"].rstrip("0123456789"), int(re.sub("[A-Z]", "", each.parts["handle"])))
        for each in said
        if each.form == "entity"
    ]
    letters = list(dict.fromkeys(letter for letter, _ in numbers))
    assert numbers == sorted(numbers, key=lambda n: (letters.index(n[0]), n[1]))
    assert (said[0].form, said[-1].line) == ("name", "as of 2026-11-21")


@given(projects())
@pytest.mark.promise("lines.counted")
def test_headings_count_what_there_is_whatever_is_shown(rows: ProjectRows) -> None:
    draft = drafted(rows)
    read, found = reading(rows), draft.buckets
    of_bucket = {
        "open": "open",
        "overdue": "overdue",
        "due today": "today",
        "due in 7 days": "soon",
        "blocked": "blocked",
        "in progress": "in_progress",
        "unblocking others": "unblocking",
    }

    said = parsed(text_of(rendered(rows), 4000))

    for each in said:
        if each.form == "heading":
            kind = next(kind.name for kind in KINDS.entities if kind.plural == each.parts["plural"])
            ids = {entity for entity, name in read.kind_of.items() if name == kind}
            parts = [part.split(" ", 1) for part in each.parts["counts"].split(", ")]
            counts = {name: number for number, name in parts}
            assert counts.pop("total") == str(len(ids))
            assert counts == {name: str(len(ids & found.of(of_bucket[name]))) for name in counts}
        elif each.form == "changed":
            assert each.line == f"## changed since 2026-11-20: {len(found.changed)}"
        elif each.form == "latest":
            more = re.search(r"and ([0-9]+) more$", each.line)
            assert len(re.findall(HANDLE, each.line)) + int(more[1] if more else 0) == len(found.changed)


@given(projects())
@pytest.mark.promise("lines.counted", "graph.partition")
def test_the_coverage_line_counts_every_kind(rows: ProjectRows) -> None:
    draft = drafted(rows)
    counts = draft.coverage
    parts = [
        f"{plural} {c['total']}/{c['direct']}/{c['unlinked']}" if c["total"] else f"{plural} 0"
        for plural, c in counts.items()
    ]
    parts += [f"{KINDS.by_name[kind].plural} not kept here" for kind in rows.absent]
    parts += [
        f"{n} {what} edges ignored"
        for what, n in (("dangling", draft.graph.dangling), ("foreign", draft.graph.foreign))
        if n
    ]

    said = parsed(text_of(rendered(rows), 250))

    assert [each.line for each in said if each.form == "coverage"] == [
        "total/direct/unlinked: " + ", ".join(parts)
    ]


@pytest.mark.promise("lines.counted")
def test_an_empty_project_says_that_nothing_is_there() -> None:
    assert written(a_project()).text.splitlines() == [
        '# project "Net loft"',
        "state active, from unset to unset",
        f"total/direct/unlinked: {', '.join(f'{kind.plural} 0' for kind in KINDS.entities)}",
        f"## tasks: {', '.join(f'0 {what}' for what in TALLY)}",
        "## changed since 2026-11-20: 0",
        "as of 2026-11-21",
    ]


@pytest.mark.promise("lines.counted")
def test_a_kind_without_a_table_is_said_to_be_absent_never_zero() -> None:
    content = rendered(a_project(absent=("output", "decision")))

    assert "decisions not kept here" in text_of(content, 250)
    assert "outputs 0" not in text_of(content, 250)
    assert content.data["coverage"]["absent"] == ["output", "decision"]
    assert not {"outputs", "decisions"} & content.data["slices"].keys()
    assert not {"outputs", "decisions"} & content.data["header"]["entity_counts"].keys()


@pytest.mark.promise("lines.order")
def test_an_edit_of_a_task_leaves_all_before_the_tasks_as_it_was() -> None:
    def the_loft(state: str) -> str:
        tasks = [a_task("t1", state_key=state), a_task("t2")]
        return written(a_project(tasks=tasks, goals=[a_goal()], plans=[a_plan()], milestones=[a_milestone()])).text

    before, after = the_loft("todo"), the_loft("blocked")

    assert before != after
    assert before.split("## tasks")[0] == after.split("## tasks")[0]


@pytest.mark.promise("build.unlinked")
@given(projects())
def test_slices_are_as_rich_without_edges_as_with_them(rows: ProjectRows) -> None:
    slices = rendered(replace(rows, edges=[])).data["slices"]

    for kind in KINDS.entities:
        if kind.name not in rows.absent:
            assert len(slices[kind.plural]) == min(len(rows.entities.get(kind.name, ())), kind.shown)
            assert not any(light["direct_edge"] for light in slices[kind.plural])


@pytest.mark.parametrize(
    ("before", "after"), [("active", "planning"), ("planning", "odd"), ("odd", "paused"), ("paused", "completed")]
)
@pytest.mark.promise("reader.overview")
def test_relevance_goes_by_state_first(before: str, after: str) -> None:
    late = [a_task(f"t{n}", due_at="2026-01-01 00:00:00+00") for n in range(600)]

    calm, busy = (
        rendered(a_project(project={"state_key": before})),
        rendered(a_project(project={"state_key": after}, tasks=late)),
    )

    assert calm.relevance > busy.relevance


@pytest.mark.promise("reader.overview")
def test_a_projects_line_in_an_overview_says_how_it_stands() -> None:
    rows = a_project(
        project={"next_step_short": 'Ask "who"', "end_at": "2027-01-15 00:00:00+00"},
        tasks=[
            a_task("t1", due_at="2026-11-01 00:00:00+00"),
            a_task("t2", state_key="blocked"),
            a_task("t3", state_key="done"),
        ],
    )

    line = rendered(rows).overview.text

    assert line == 'PRJ1 "Net loft" active, until 2027-01-15, 2 open, 1 overdue, 1 blocked, next "Ask \'who\'"\n'


# ---- JSON

NODE = ["id", "kind", "name", "state_key", "type_key", "direct_edge", "last_updated"]
EDGE = ["id", "src_id", "src_kind", "dst_id", "dst_kind", "rel"]


@given(projects(most=12))
@pytest.mark.promise("graph.schema")
def test_the_snapshot_has_the_shape_of_the_light_schema(rows: ProjectRows) -> None:
    draft = drafted(rows)
    graph = json.loads(json.dumps(rendered(rows).data["graph"]))

    assert list(graph) == [
        "root_id",
        "root_kind",
        "max_depth",
        "nodes",
        "edges",
        "coverage",
        "omitted",
        "capped_by",
    ]
    assert (graph["root_id"], graph["root_kind"], graph["max_depth"]) == (PROJECT_ID, "project", 2)
    assert [(node["id"], node["kind"]) for node in graph["nodes"]] == list(draft.snapshot.nodes)
    kind_of = reading(rows).kind_of
    for node in graph["nodes"]:
        assert list(node) == NODE
        assert node["direct_edge"] is (node["id"] in draft.graph.direct)
        assert isinstance(node["name"], str)
        assert re.fullmatch(DAY, node["last_updated"] or "2026-11-21")
    stored = {edge[0]: edge for edge in rows.edges}
    for edge in graph["edges"]:
        assert list(edge) == EDGE
        _, src, _, dst, _, rel = stored[edge["id"]]
        assert (edge["src_id"], edge["dst_id"], edge["rel"]) == (src, dst, rel)
        assert (edge["src_kind"], edge["dst_kind"]) == (kind_of[src], kind_of[dst])
    plurals = {kind.plural for kind in KINDS.entities if kind.name not in rows.absent}
    assert graph["coverage"].keys() == plurals
    assert graph["omitted"] == {KINDS.by_name[kind].plural: n for kind, n in draft.snapshot.omitted.items()}
    assert graph["capped_by"] == list(draft.snapshot.capped_by)


@given(projects())
@pytest.mark.promise("graph.schema", "handles.either")
def test_what_the_json_shows_has_a_uuid_and_a_handle(rows: ProjectRows) -> None:
    data = rendered(rows).data

    shown = {node["id"] for node in data["graph"]["nodes"]}
    shown |= {light["id"] for table in data["slices"].values() for light in table}
    shown |= {entity["id"] for entity in data["recent"]["entities"]}
    assert shown <= data["handles"].keys()
    assert len(set(data["handles"].values())) == len(data["handles"])
    for light in lights_of(rendered(rows)).values():
        assert data["handles"][light["id"]] == light["handle"]


@given(projects())
@pytest.mark.promise("graph.schema")
def test_the_header_counts_every_kind_and_holds_no_empty_field(rows: ProjectRows) -> None:
    header = rendered(rows).data["header"]

    assert header["id"] == PROJECT_ID
    assert header["entity_counts"] == {
        plural: counts["total"] for plural, counts in drafted(rows).coverage.items()
    }
    assert None not in header.values()
    assert "timezone" not in header


@pytest.mark.parametrize(("src", "dst"), [("project", "doc"), ("doc", "project")])
@pytest.mark.promise("graph.schema")
def test_the_context_document_is_in_the_header_whichever_way_its_edge_points(src: str, dst: str) -> None:
    rows = a_project(
        documents=[a_document("doc", title="Brief")], edges=[an_edge(src, "has_context_document", dst)]
    )

    content = rendered(rows)

    assert content.data["header"]["context_document_id"] == uid("doc")
    assert content.data["header"]["context_document_title"] == "Brief"
    assert "context document DOC1\n" in text_of(content, 1500)


@pytest.mark.promise("build.deterministic")
def test_of_several_context_documents_the_one_with_the_lowest_id_is_taken() -> None:
    names = [f"doc{n}" for n in range(5)]
    documents = [a_document(name) for name in names]
    edges = [an_edge("project", "has_context_document", name) for name in names]

    for order in (edges, edges[::-1]):
        header = rendered(a_project(documents=documents, edges=order)).data["header"]
        assert header["context_document_id"] == min(map(uid, names))


@pytest.mark.promise("graph.schema")
def test_only_a_document_is_a_context_document() -> None:
    rows = a_project(tasks=[a_task("t")], edges=[an_edge("project", "has_context_document", "t")])

    assert "context_document_id" not in rendered(rows).data["header"]


# ---- the same rows, the same bytes


def bytes_of(content: Content) -> Sequence[bytes]:
    texts = [text_of(content, budget).encode() for budget in (250, 1500, 4000)]
    return [orjson.dumps(content.data, default=dict), json.dumps(content.data, default=dict).encode(), *texts]


@given(projects(), st.integers(0, 99))
@settings(max_examples=150)
@pytest.mark.promise("build.deterministic")
def test_rows_in_any_order_give_the_same_bytes(rows: ProjectRows, seed: int) -> None:
    assert bytes_of(rendered(rows)) == bytes_of(rendered(shuffled(rows, seed)))


def surveyed(rows: ProjectRows) -> ProjectRows:
    """The rows with only those cells that decide what is shown."""
    kept = {kind.name: [kind.at[name] for name in kind.ranking] for kind in KINDS.entities}
    entities = {
        kind: [tuple(cell if at in {0, *kept[kind]} else None for at, cell in enumerate(row)) for row in table]
        for kind, table in rows.entities.items()
    }
    return replace(rows, entities=entities)


@given(projects(most=9))
@pytest.mark.promise("build.deterministic")
def test_a_bundle_from_surveyed_rows_is_the_bundle_from_whole_rows(rows: ProjectRows) -> None:
    whole = {row[0]: row for table in rows.entities.values() for row in table}

    draft = completed(drafted(surveyed(rows)), whole)

    assert bytes_of(render(draft, handles_of(draft), count)) == bytes_of(rendered(rows))


@hostile
@pytest.mark.promise("build.deterministic")
def test_rows_of_a_large_project_in_any_order_give_the_same_bytes(seed: int) -> None:
    rows = a_hostile_project(seed, each=40, edges=800)

    assert bytes_of(rendered(rows)) == bytes_of(rendered(shuffled(rows, seed)))


DIGEST = """
import hashlib
from strategies import *
for rows in (a_hostile_project(1), a_big_project(500, 900), shuffled(a_big_project(500, 900), 3)):
    draft = drafted(rows)
    content = render(draft, handles_of(draft), len)
    text = "".join(line.text for line in content.lines)
    print(hashlib.sha256(repr((content.data, text)).encode()).hexdigest())
"""


@pytest.mark.promise("build.deterministic")
def test_another_process_with_other_hashes_gives_the_same_bytes() -> None:
    def digests(seed: str) -> list[str]:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    one, other = digests("1"), digests("2")

    assert one == other
    assert one[1] == one[2]


# ---- every input builds


@pytest.mark.parametrize("day", [date.min, date(2000, 2, 29), date.max])
@pytest.mark.promise("graph.total")
def test_any_day_of_the_calendar_can_be_the_as_of_date(day: date) -> None:
    draft = drafted(a_project(tasks=[a_task(due_at="2026-11-21 00:00:00+00")]), as_of=day)

    content = render(draft, handles_of(draft), count)

    assert text_of(content, 250).endswith(f"as of {day.isoformat()}\n")


@pytest.mark.promise("graph.total")
def test_ids_in_several_tables_build_one_line_each() -> None:
    rows = a_project(
        tasks=[a_task("x")],
        goals=[a_goal("x"), a_goal("g")],
        risks=[a_row("risk", PROJECT_ID)],
        edges=[an_edge("project", "has_goal", "x"), an_edge("g", "relates_to", "x")],
    )

    said = parsed(written(rows).text)

    assert [each.parts["handle"] for each in said if each.form == "entity"] == ["G1", "T1"]


@pytest.mark.promise("graph.total", "graph.caps", "lines.budget")
def test_a_hundred_thousand_entities_and_edges_build() -> None:
    rows = a_big_project(100_000, 100_000)

    content = rendered(rows)

    fitted = fit(content.lines, content.always, 1500)
    assert count(fitted.text) == fitted.tokens <= 1500
    graph, coverage = content.data["graph"], content.data["coverage"]["kinds"]
    assert len(graph["nodes"]) == 60
    assert len(graph["edges"]) <= 80
    assert "nodes" in graph["capped_by"]
    assert sum(graph["omitted"].values()) == sum(counts["reachable"] for counts in coverage.values()) - 59
    assert sum(counts["total"] for counts in coverage.values()) == 100_000
    assert len(orjson.dumps(content.data)) < 1_000_000


@pytest.mark.promise("build.deterministic")
def test_a_bundle_says_when_and_where_its_dates_are_true() -> None:
    content = rendered(a_project())

    assert content.data["as_of"] == TODAY.isoformat()
    assert content.data["zone"] == UTC.key
    assert drafted(a_project()).valid_until.isoformat() == "2026-11-22T00:00:00+00:00"
