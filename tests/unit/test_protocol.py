"""The freshness protocol holds in every state of the model (``protocol``), and every rule of it is needed."""

import sys
from functools import cache

import pytest
from protocol import (
    ASSUMPTIONS,
    MUTANTS,
    REDUNDANT,
    STEPS,
    WORLDS,
    Break,
    Fault,
    Result,
    Rules,
    State,
    Violation,
    canonical,
    main,
    search,
    told,
    without,
)


@cache
def of_world(name: str) -> Result:
    return search(Rules(bounds=WORLDS[name]))


@cache
def of_mutant(rule: Break) -> Result:
    return search(without(rule, MUTANTS[rule]))


def shown(violation: Violation | None) -> str:
    """The way to the violation: on the screen with ``pytest -s``, in the report of a test that fails."""
    text = "" if violation is None else "\n".join(told(violation))
    sys.stdout.write(f"\n{text}\n")
    return text


def ways_on(state: State, rules: Rules) -> set[tuple[str, State]]:
    return {(name, canonical(after, rules)) for name, step in STEPS.items() for after in step.after(state, rules)}


@pytest.mark.promise("fresh.model")
@pytest.mark.parametrize("world", WORLDS)
def test_in_every_state_nothing_is_lost_and_everything_ends_right(world: str) -> None:
    result = of_world(world)

    assert result.violation is None, shown(result.violation)


@pytest.mark.promise("fresh.model")
def test_the_search_is_no_sample() -> None:
    assert sum(of_world(world).states for world in WORLDS) >= 100_000


@pytest.mark.promise("fresh.model")
@pytest.mark.parametrize("rule", MUTANTS)
def test_without_any_one_rule_the_protocol_fails(rule: Break) -> None:
    result = of_mutant(rule)

    assert result.violation is not None, f"{result.states} states, and all is well"
    shown(result.violation)


@pytest.mark.parametrize("rule", REDUNDANT)
def test_what_the_other_rules_imply_is_not_missed(rule: Break) -> None:
    result = search(without(rule, REDUNDANT[rule]))

    assert result.violation is None, shown(result.violation)


@pytest.mark.parametrize("fault", ASSUMPTIONS)
def test_what_the_protocol_stands_on(fault: Fault) -> None:
    result = search(Rules(bounds=ASSUMPTIONS[fault]))

    assert result.violation is not None, "the protocol survives it: say so in the ADR"
    shown(result.violation)


def test_every_rule_is_needed_or_known_to_be_implied() -> None:
    assert {*MUTANTS, *REDUNDANT} == {*Break}


@pytest.mark.promise("fresh.model")
@pytest.mark.parametrize("rule", MUTANTS)
def test_a_state_and_the_one_that_stands_for_it_can_do_the_same(rule: Break) -> None:
    rules, violation = without(rule, MUTANTS[rule]), of_mutant(rule).violation
    assert violation is not None

    for _, state in violation.trace[:-1]:
        standing = canonical(state, rules)
        assert canonical(standing, rules) == standing
        assert ways_on(standing, rules) == ways_on(state, rules)


@pytest.mark.promise("fresh.model")
@pytest.mark.parametrize("rule", MUTANTS)
def test_every_line_of_a_trace_is_a_step(rule: Break) -> None:
    rules, violation = without(rule, MUTANTS[rule]), of_mutant(rule).violation
    assert violation is not None

    for (_, before), (name, after) in zip(violation.trace, violation.trace[1:], strict=False):
        assert after in set(STEPS[name].after(before, rules))


def test_the_command_line_tells_the_way_to_a_violation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([Break.NO_FENCE]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("no fence: ")
    assert lines[1] == "8 steps: the generation in Redis goes backwards"
    assert "builder publishes" in lines[-1]


def test_the_command_line_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no such mutant"]) == 2

    assert "no fence" in capsys.readouterr().err
