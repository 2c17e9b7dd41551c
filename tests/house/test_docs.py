"""What the documents say is so: links lead somewhere, decisions are numbered, commands exist."""

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = [*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md"), *(CHECKOUT / "samples").rglob("*.md")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_relative_link_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8"))

    assert [link for link in links if not (document.parent / link).exists()] == []


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
