"""What the documents say is so: links lead somewhere, decisions are numbered, commands exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from worker.cli import cli

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = [*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md"), *(CHECKOUT / "samples").rglob("*.md")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_relative_link_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8"))

    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_link_to_a_heading_leads_to_one(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", document.read_text(encoding="utf-8"))

    assert [
        (page, to) for page, to in links if to not in anchors((document.parent / page) if page else document)
    ] == []


def anchors(document: Path) -> set[str]:
    """What its headings can be linked to by."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in (CHECKOUT / "docs" / "adr").glob("[0-9]*.md"))

    assert numbers == list(range(1, len(numbers) + 1))


def test_every_decision_names_its_alternatives() -> None:
    decisions = (CHECKOUT / "docs" / "adr").glob("[0-9]*.md")

    assert [path.name for path in decisions if "## Alternatives" not in path.read_text(encoding="utf-8")] == []


def test_every_module_says_what_it_is() -> None:
    modules = [
        path
        for room in ("foreword", "loaders", "prompts", "tasks", "worker")
        for path in (CHECKOUT / room).rglob("*.py")
    ]

    assert [path.name for path in modules if not path.read_text(encoding="utf-8").lstrip().startswith('"""')] == []


def test_every_environment_variable_in_the_documents_is_a_setting() -> None:
    settings = (CHECKOUT / "worker" / "settings.py").read_text(encoding="utf-8")

    named = {
        name
        for path in DOCUMENTS
        for name in re.findall(r"FOREWORD_([A-Z_]+)\b", path.read_text(encoding="utf-8"))
    }

    assert [name for name in sorted(named) if f"    {name.lower().removesuffix('_file')}:" not in settings] == []


# ---- commands


def named_commands(text: str) -> Iterator[str]:
    """What a document says to type, from the command's name on: `python -m worker ...` to the end of its line in a
    block of code, of its span in prose; there also `parked list` or `relay --inline`, without what begins them.
    """
    for number, part in enumerate(text.split("```")):
        if number % 2:
            yield from re.findall(r"python -m worker\b([^`\n]*)", part)
            continue
        for span in re.findall(r"`([^`]+)`", part):
            said = " ".join(span.split())
            if "python -m worker" in said:
                yield said.partition("python -m worker")[2]
            elif is_abridged(said.split()):
                yield said


def is_abridged(words: list[str]) -> bool:
    """Whether this is one of our commands without what begins it, and not a word of English."""
    command = cli.commands.get(words[0])
    return len(words) > 1 and command is not None and (isinstance(command, click.Group) or words[1][:2] == "--")


def typed(line: str) -> list[str]:
    """The words that the shell would give to the command: up to a comment, a pipe, a redirection."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("();<>|&"):
            break
        words.append(word)
    return words


def refused(command: click.Command, words: list[str], parent: click.Context | None = None) -> str:
    """Why this cannot be typed; nothing where it can. Prose leaves arguments out, so one that is missing is no
    fault.
    """
    # With its settings and its parent: a command keeps the names of --help that it is first asked for.
    context = click.Context(command, parent=parent, info_name=command.name, **command.context_settings)
    try:
        if isinstance(command, click.Group):
            _, rest, _ = command.make_parser(context).parse_args(list(words))
            if not rest:
                return ""
            _, found, rest = command.resolve_command(context, rest)
            assert found is not None
            return refused(found, rest, context)
        command.parse_args(context, list(words))
    except click.MissingParameter:
        return ""
    except click.exceptions.Exit:  # --help
        return ""
    except click.UsageError as error:
        return error.format_message()
    return ""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_command_in_the_documents_can_be_typed(document: Path) -> None:
    lines = named_commands(document.read_text(encoding="utf-8"))

    assert {line: why for line in lines if (why := refused(cli, typed(line)))} == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("`python -m worker parked lst`", "No such command 'lst'"),
        ("`python -m worker --data-dri x up`", "No such option"),
        ("see `parked retry --al`", "No such option"),
        ("```\npython -m worker work --queue edit  # one\n```", "'edit' is not one of"),
        ("```\n.venv/bin/python -m worker pause everything\n```", "'everything' is not one of"),
        ("`python -m\nworker` and `python -m worker status --watch\nsoon`", "is not a valid float"),
        ("`python -m worker projects PRJ1`", "unexpected extra argument"),
    ],
)
def test_a_command_that_cannot_be_typed_would_be_found(text: str, why: str) -> None:
    (line,) = (line for line in named_commands(text) if typed(line))

    assert why in refused(cli, typed(line))
