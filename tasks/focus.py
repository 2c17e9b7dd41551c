"""Build and publish the focus bundle of one entity, on demand."""

from foreword import codec, keys
from foreword.bundle import Content
from foreword.focus import render_focus, select_focus
from foreword.lines import Line, fit
from foreword.stamp import Stamp
from loaders import ledger
from loaders.entity import resolve
from loaders.handles import handles_for
from loaders.project import load_project
from tasks.project import draft_of, named_misfits, stamp_of
from tasks.tools import Tools


def build_focus(project_id: str, reference: str, tools: Tools, *, with_graph: bool = False) -> Stamp:
    """Build the focus bundle of the entity that a handle or UUID stands for, and publish it.

    Raises:
        UnknownProject, UnknownEntity: there is no such live thing.
        BuildError, SchemaError, Unavailable: nothing was published.
    """
    with ledger.place(tools.connection, project_id) as turn:
        rows = load_project(tools.connection, project_id, tools.statements)
        _, entity = resolve(tools.connection, project_id, reference, tools.statements.catalog)
        draft = select_focus(draft_of(rows, tools), entity)
        handles = handles_for(tools.connection, project_id, draft.named, tools.kinds)
        with named_misfits(rows, tools):
            found = render_focus(draft, handles, tools.count, with_graph=with_graph)
        text = fit(found.lines, found.always, tools.budget)
        stamp = stamp_of(draft.base, turn, tools, text)
        content = Content(
            data=found.data, lines=found.lines, always=found.always, overview=Line(0, None, 0, ""), relevance=0
        )
        fields = codec.encode(content, stamp, text, (), tools.dumps)
        for name in (entity, handles[entity]):
            tools.store.publish(keys.focus(project_id, name), stamp.fence, fields, tools.ttl)
    return stamp
