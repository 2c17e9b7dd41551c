"""``explain`` and ``inspect``: why a bundle is what it is, as a table, as JSON, and as a page to look at."""

from collections import Counter
from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import click

from foreword.bundle import graph_json, lights_of
from foreword.draft import Draft
from foreword.errors import BadInput, ForewordError, UnknownEntity
from foreword.explain import Explanation, LeftOut, Why, as_json, explain, replay
from foreword.lines import LARGEST_BUDGET, SMALLEST_BUDGET, check_budget
from foreword.page import page
from foreword.reader import TRUSTED, Context, Reader
from loaders.catalog import inspect as catalog_of
from loaders.connection import connect
from loaders.entity import resolve
from prompts.inspector import inspector_page
from tasks.project import drafted
from worker.references import project_ids
from worker.screen import console, heading, print_json, say, table
from worker.settings import Settings
from worker.wiring import Services, redis_client, redis_errors, services, tools

_BUDGET = click.option(
    "--budget",
    type=int,
    metavar="N",
    help=f"Tokens of the text, {SMALLEST_BUDGET} to {LARGEST_BUDGET}; by default the bundle's own.",
)
_PLACES = ("tokens", "in all", "why", "answers", "line")
_LEFT = ("handle", "kind", "score", "why not", "title")
_MOST_LEFT = 20


@click.command("explain", short_help="Say why a bundle's text is what it is")
@click.argument("project")
@click.argument("entity", required=False)
@_BUDGET
@click.option(
    "--json", "as_json_", is_flag=True, help="Everything, for a script: lines, reasons, what is left out."
)
@click.pass_obj
def explain_(settings: Settings, project: str, entity: str | None, budget: int | None, *, as_json_: bool) -> None:
    """Say for every line of PROJECT's text why it is there, and for every entity left out why it is not; or
    for one
    ENTITY alone (a handle or a UUID).

    Works on the project as it is now, and changes nothing that chats read.
    """
    budget = _checked(budget, settings)
    with services(settings) as found:
        project_id, wanted = _resolved(found, project, entity)
        draft, explanation, _ = _explained(settings, found, project_id, budget)
    if wanted is not None:
        _print_entity(explanation, wanted, entity or wanted, as_json_=as_json_)
    elif as_json_:
        print_json({"project_id": project_id, "as_of": draft.as_of.isoformat(), **as_json(explanation)})
    else:
        _print(explanation)


@click.command("inspect", short_help="Write a page that shows a bundle and why it is so")
@click.argument("project")
@_BUDGET
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the page is written; by default inspect-PROJECT.html here.",
)
@click.pass_obj
def inspect_(settings: Settings, project: str, budget: int | None, output: Path | None) -> None:
    """Write one HTML page about PROJECT's bundle: its text under a budget that can be moved, why each line is
    there,
    what is left out, the graph, what it answers, and how it differs from the bundle that chats read now.

    The page needs no network and sends nothing. It holds the project's data: keep it as you keep those.
    """
    budget = _checked(budget, settings)
    with services(settings) as found:
        project_id, _ = _resolved(found, project, None)
        draft, explanation, handles = _explained(settings, found, project_id, budget)
        stored = _stored(found, project_id, budget)
    inspection = {
        "project": {
            "id": project_id,
            "handle": handles[project_id],
            "name": str(draft.rows.project[draft.kinds.project.at["name"]]),
        },
        "as_of": draft.as_of.isoformat(),
        "zone": draft.zone.key,
        "generation": stored.stamp.generation if stored and stored.stamp else None,
        **as_json(explanation),
        "coverage": draft.coverage,
        "graph": graph_json(draft, lights_of(draft)),
        "differences": _differences(stored, explanation),
    }
    path = output or Path(f"inspect-{handles[project_id]}.html")
    try:
        path.write_text(inspector_page(inspection), encoding="utf-8")
    except OSError as error:
        raise ForewordError(f"{path} cannot be written: {error.strerror}; name another with --output") from error
    click.echo(path)
    say(f"open it in a browser; {len(explanation.steps)} lines, {len(explanation.left_out)} entities left out")


def _checked(budget: int | None, settings: Settings) -> int:
    budget = check_budget(settings.budget if budget is None else budget)
    if budget > LARGEST_BUDGET:
        raise BadInput(f"there are lines for {LARGEST_BUDGET} tokens, not for {budget}; ask for fewer")
    return budget


def _resolved(found: Services, project: str, entity: str | None) -> tuple[str, str | None]:
    with connect(found.database_url) as connection:
        catalog = catalog_of(connection)
        project_id = project_ids(connection, [project], catalog)[0]
        return project_id, resolve(connection, project_id, entity, catalog)[1] if entity else None


def _explained(
    settings: Settings, found: Services, project_id: str, budget: int
) -> tuple[Draft, Explanation, Mapping[str, str]]:
    with tools(settings, found) as opened:
        draft, handles = drafted(project_id, opened)
        written = page(draft, lights_of(draft), handles, opened.count)
    return draft, explain(draft, written, handles, budget), handles


def _stored(found: Services, project_id: str, budget: int) -> Context | None:
    """The bundle that chats read now, if there is one."""
    with redis_client(found.redis_url) as client, redis_errors("reading"):
        context = Reader(client).project(project_id, actor=TRUSTED, budget=budget)
        return context or None


def _differences(stored: Context | None, explanation: Explanation) -> dict[str, Any] | None:
    """What the text says now and the published one does not, line by line; None where none is published."""
    if stored is None or stored.stamp is None:
        return None
    old, new = stored.text.splitlines(), replay(explanation).splitlines()
    lines: list[dict[str, str | None]] = []
    for what, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        pairs = max(b - a, d - c)
        before = [*old[a:b], *[None] * (pairs - (b - a))]
        after = [*new[c:d], *[None] * (pairs - (d - c))]
        lines += [{"change": _change(x, y), "before": x, "after": y} for x, y in zip(before, after, strict=True)]
    return {"generation": stored.stamp.generation, "lines": lines}


def _change(before: str | None, after: str | None) -> str:
    if before is None:
        return "added"
    return "removed" if after is None else "changed"


def _print(explanation: Explanation) -> None:
    screen = console()
    shown = [why for why in explanation.steps if why.total <= explanation.budget or why.rule == "always"]
    heading(f"lines in order of admission, {explanation.budget} tokens")
    screen.print(
        table(_PLACES, [_row(why) for why in shown if not why.is_heading], right=_PLACES[:2]), markup=False
    )
    heading("questions, and how much of their answers is in the text")
    rows = [
        (answer.id, answer.asks, sum(at <= explanation.budget for at in answer.at), answer.facts)
        for answer in explanation.questions
    ]
    screen.print(table(("", "asks", "said", "of"), rows, right=("said", "of")))
    reasons = Counter(left.reason for left in explanation.left_out)
    heading(f"left out: {', '.join(f'{n} {reason}' for reason, n in reasons.most_common()) or 'nothing'}")
    left = [_left_row(left) for left in explanation.left_out[:_MOST_LEFT]]
    screen.print(table(_LEFT, left, right=("score",)))
    if len(explanation.left_out) > _MOST_LEFT:
        say(f"and {len(explanation.left_out) - _MOST_LEFT} more; --json has them all")


def _row(why: Why) -> tuple[str, ...]:
    facts = " ".join(f"{name}+{n}" for name, n in why.facts.items())
    score = f"{why.rule}, score {why.score}" if why.score is not None else why.rule
    return f"+{why.cost}", str(why.total), score, facts, _plain(why.text)


def _left_row(left: LeftOut) -> tuple[str, ...]:
    return left.handle or "-", left.kind, str(left.score), f"{left.reason}: {left.detail}", _plain(left.title[:60])


def _plain(text: str) -> str:
    """Somebody's words are not markup."""
    return text.replace("[", "\\[")


def _print_entity(explanation: Explanation, entity: str, asked: str, *, as_json_: bool) -> None:
    steps = [why for why in explanation.steps if why.entity == entity]
    left = next((left for left in explanation.left_out if left.entity == entity), None)
    if not steps and left is None:
        raise UnknownEntity(f"{asked} is no live entity of this project, so no text can show it")
    if as_json_:
        full = as_json(explanation)
        print_json(
            {
                "entity": entity,
                "budget": explanation.budget,
                "steps": [w for w in full["steps"] if w["entity"] == entity],  # type: ignore[attr-defined]
                "left_out": next((e for e in full["left_out"] if e["entity"] == entity), None),  # type: ignore[attr-defined]
            }
        )
        return
    for why in steps:
        facts = ", ".join(f"{n} of {name}" for name, n in why.facts.items()) or "no listed question"
        state = "shown" if why.total <= explanation.budget else "not shown"
        click.echo(why.text)
        click.echo(f"  {state} at {explanation.budget} tokens; from {why.total} tokens on, for {why.cost} tokens")
        click.echo(f"  rule {why.rule}; answers {facts}")
        click.echo(f"  score {why.score}: {', '.join(f'{name} {points}' for name, points in why.terms.items())}")
    if left is not None:
        click.echo(f"{left.kind} {left.handle or left.entity} is left out ({left.reason}): {left.detail}")
