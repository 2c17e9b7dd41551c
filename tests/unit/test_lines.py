"""The line grammar, and fitting lines into a budget."""

import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts

from foreword.errors import BadBudget
from foreword.lines import SMALLEST_BUDGET, Fitted, Line, admitted, check_budget, fit, is_line, shorten, total
from foreword.text import clean
from foreword.tokens import count


def a_line(place: int, tokens: int, under: int | None = None, said: int = 1) -> Line:
    return Line(place, under, tokens, f"line {place}{', more' * (said - 1)}\n")


def a_heading(place: int, tokens: int) -> Line:
    return Line(place, place, tokens, f"## {place}\n")


@st.composite
def pages(draw: st.DrawFn) -> tuple[list[Line], int]:
    """Lines in order of rank, and how many of them are printed in any case; a heading stands before its lines, and
    a line that says more at the place of another after it.
    """
    always = [a_line(place, draw(st.integers(1, 30))) for place in range(draw(st.integers(0, 8)))]
    ranked: list[Line] = []
    sections = st.integers(1, 5)
    standing = {line.place: (line, 1) for line in always}
    for number in range(draw(st.integers(0, 30))):
        if standing and draw(st.integers(0, 2)) == 0:
            line, said = draw(st.sampled_from(list(standing.values())))
            longer = a_line(line.place, line.tokens + draw(st.integers(1, 60)), line.heading, said + 1)
            ranked.append(longer)
            standing[line.place] = longer, said + 1
            continue
        section = 1000 * draw(sections)
        if section >= 4000:
            ranked.append(a_line(section + number, draw(st.integers(1, 90))))
            standing[ranked[-1].place] = ranked[-1], 1
            continue
        if not any(line.place == section for line in ranked):
            ranked.append(a_heading(section, draw(st.integers(1, 30))))
        ranked.append(a_line(section + 1 + number, draw(st.integers(1, 90)), section))
        standing[ranked[-1].place] = ranked[-1], 1
    return always + ranked, len(always)


budgets = st.integers(SMALLEST_BUDGET, 1200)


def shown(fitted: Fitted) -> set[str]:
    return set(fitted.text.splitlines())


@pytest.mark.parametrize(
    "text",
    ["x\n", "# project\n", '"/"\n', "\u0915\u094d\n", "T1 a/b\n", "\u200d\n", "trailing \n"],
)
@pytest.mark.promise("lines.additive")
def test_a_line_of_the_grammar(text: str) -> None:
    assert is_line(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", "x", " x\n", "\u3000x\n", "/x\n", "x\ny\n", "x\r\n", "a\u2028b\n", "a\x00b\n"),
        *("e\u0301\n", "\tx\n", "a\u0085b\n", "a\u2029b\n", "\x1fx\n"),
    ],
)
@pytest.mark.promise("lines.additive")
def test_no_line_of_the_grammar(text: str) -> None:
    assert not is_line(text)


@given(texts)
@pytest.mark.promise("lines.additive")
def test_the_grammar_is_what_the_specification_says(text: str) -> None:
    says_so = (
        text != ""
        and text[0] != "/"
        and not text[0].isspace()
        and not any(unicodedata.category(c) in {"Cc", "Zl", "Zp"} for c in text)
        and unicodedata.normalize("NFC", text) == text
    )

    assert is_line(f"{text}\n") is says_so


@given(pages(), budgets)
@pytest.mark.promise("lines.budget")
def test_a_text_never_exceeds_its_budget(page: tuple[Sequence[Line], int], budget: int) -> None:
    fitted = fit(*page, budget)

    assert fitted.tokens <= budget


@given(pages(), budgets)
@pytest.mark.promise("lines.counted")
def test_the_count_is_that_of_the_text(page: tuple[Sequence[Line], int], budget: int) -> None:
    lines, _ = page

    fitted = fit(*page, budget)

    printed = [line for line in lines if line.text.rstrip("\n") in shown(fitted)]
    assert fitted.text.count("\n") == len(shown(fitted)) == len(printed)
    assert fitted.tokens == total(printed)


@given(pages(), budgets)
@pytest.mark.promise("lines.parts", "lines.monotone")
def test_the_lines_printed_are_a_beginning_of_the_order_the_last_of_each_place(
    page: tuple[Sequence[Line], int], budget: int
) -> None:
    lines, always = page
    plain = [line for line in lines if line.heading != line.place]
    headings = {line.place: line.tokens for line in lines if line.heading == line.place}

    def standing(first: int) -> dict[int, Line]:
        return {line.place: line for line in plain[:first]}

    def cost(first: int) -> int:
        chosen = standing(first).values()
        under = {line.heading for line in chosen if line.heading is not None}
        return total(chosen) + sum(headings[place] for place in under)

    fits = always
    while fits < len(plain) and cost(fits + 1) <= budget:
        fits += 1
    fitted = fit(*page, budget)

    assert {text for text in shown(fitted) if not text.startswith("##")} == {
        line.text.rstrip("\n") for line in standing(fits).values()
    }
    assert fitted.tokens == cost(fits)


@given(pages())
@pytest.mark.promise("lines.parts")
def test_what_is_admitted_says_from_which_total_it_is_printed(page: tuple[Sequence[Line], int]) -> None:
    lines, always = page

    for line, from_total in admitted(lines, len(lines), 0):
        if from_total >= SMALLEST_BUDGET:
            at, before = fit(lines, always, from_total), fit(lines, always, max(from_total - 1, SMALLEST_BUDGET))
            if line.heading != line.place:
                assert at.tokens >= from_total
                assert line in lines[:always] or at.tokens == from_total
                assert line in lines[:always] or from_total == SMALLEST_BUDGET or before.tokens < from_total


@given(pages(), budgets, st.integers(0, 300))
@pytest.mark.promise("lines.monotone")
def test_a_larger_budget_shows_all_that_a_smaller_one_showed(
    page: tuple[Sequence[Line], int], budget: int, more: int
) -> None:
    smaller, larger = fit(*page, budget), fit(*page, budget + more)

    for text in shown(smaller):
        assert any(each == text or each.startswith(f"{text}, ") for each in shown(larger))


@given(pages(), budgets)
@pytest.mark.promise("lines.order")
def test_lines_stand_in_their_places_and_under_their_headings(
    page: tuple[Sequence[Line], int], budget: int
) -> None:
    lines, always = page
    by_text = {line.text.rstrip("\n"): line for line in lines}

    printed = [by_text[text] for text in fit(*page, budget).text.splitlines()]

    places = [line.place for line in printed]
    assert places == sorted(places)
    assert {line.heading for line in printed if line.heading is not None} <= set(places)
    assert {line.place for line in lines[:always]} <= set(places)


@pytest.mark.promise("lines.budget")
def test_a_heading_is_paid_for_once_and_only_with_a_line_below_it() -> None:
    lines = [a_heading(10, 100), a_line(11, 100, 10), a_line(12, 50, 10), a_heading(20, 1), a_line(21, 1, 20)]

    assert fit(lines, 0, 250).text == "## 10\nline 11\nline 12\n"
    assert fit(lines, 0, 251).text == "## 10\nline 11\nline 12\n"
    assert fit(lines, 0, 252).text == "## 10\nline 11\nline 12\n## 20\nline 21\n"


@pytest.mark.promise("lines.monotone")
def test_nothing_is_admitted_after_the_first_line_that_does_not_fit() -> None:
    assert fit([a_line(1, 200), a_line(2, 90), a_line(3, 1)], 0, 250).text == "line 1\n"


@pytest.mark.promise("lines.parts")
def test_a_line_that_says_more_costs_only_what_it_adds_and_stands_in_place_of_the_first() -> None:
    lines = [a_heading(10, 5), a_line(11, 100, 10), a_line(12, 100, 10), a_line(11, 145, 10, said=2)]

    assert fit(lines, 0, 250).text == "## 10\nline 11, more\nline 12\n"
    assert fit(lines, 0, 250).tokens == 250
    assert fit([*lines[:3], a_line(11, 146, 10, said=2)], 0, 250).text == "## 10\nline 11\nline 12\n"


@pytest.mark.parametrize("budget", [249, 0, -1])
@pytest.mark.promise("lines.budget")
def test_a_budget_that_cannot_hold_the_header_is_refused(budget: int) -> None:
    with pytest.raises(BadBudget, match="250 or more"):
        fit([], 0, budget)
    assert check_budget(250) == 250


@given(texts, st.integers(20, 60))
@pytest.mark.promise("lines.budget")
def test_a_shortened_line_counts_no_more_than_its_limit(text: str, limit: int) -> None:
    body = clean(text).replace('"', "'")

    line, tokens = shorten('T12 "', body, '" todo', limit, count)

    assert tokens == count(line) <= limit
    assert is_line(line)
    assert line.startswith('T12 "')
    assert line.endswith('" todo\n')


@pytest.mark.promise("lines.budget")
def test_a_line_that_fits_is_not_shortened() -> None:
    assert shorten('"', "Net loft", '"', 20, count)[0] == '"Net loft"\n'
