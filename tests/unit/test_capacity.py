"""The model of docs/capacity.md: what an account needs, from what was measured and what is assumed."""

import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.capacity.__main__ import PAGE, main
from benchmarks.capacity.costs import Costs, load, save
from benchmarks.capacity.model import (
    PACES,
    Account,
    assumed,
    builds_of,
    doubled,
    editing,
    holds,
    keeps_up,
    looking,
    ranks,
    size,
)
from benchmarks.capacity.report import filled
from loaders.claims import EDITS, PACE_MILLISECONDS, SLOWEST_MILLISECONDS, SWEEP
from tasks.project import SPREAD_SECONDS
from worker.relay import POLL_SECONDS, windows
from worker.settings import WINDOW

rates = st.floats(1e-6, 1e4)
times = st.floats(1e-4, 2.0)
accounts = st.builds(
    Account,
    projects=st.integers(1, 10**7),
    edits=st.floats(0, 1e4),
    zipf=st.floats(0, 2),
    users=st.integers(0, 10**6),
    reads=st.floats(0, 1e5),
    zone=st.floats(0.01, 1),
)


@pytest.fixture(scope="module")
def costs() -> Costs:
    return load()


# ---- how edits become builds


def test_pauses_are_those_of_the_relay() -> None:
    assert PACES[0] * 1000 == PACE_MILLISECONDS
    assert PACES[-1] * 1000 == SLOWEST_MILLISECONDS
    assert all(after in {2 * before, PACES[-1]} for before, after in pairwise(PACES))


@given(rates, times)
def test_there_is_never_more_than_a_build_for_an_edit_nor_than_pauses_allow(edits: float, build: float) -> None:
    builds, dirty = builds_of(edits, build)

    assert 0 < builds <= edits * (1 + 1e-9)
    assert builds <= 1 / (build + PACES[0])
    assert 0 <= dirty <= 1


@given(times)
def test_a_project_that_is_edited_without_a_rest_is_built_at_the_slowest_pace(build: float) -> None:
    builds, dirty = builds_of(1e6, build)

    assert builds == pytest.approx(1 / (build + PACES[-1]))
    assert dirty == pytest.approx(1, abs=1e-3)


def test_edits_that_are_far_between_are_built_one_by_one() -> None:
    assert builds_of(1e-4, 0.01)[0] == pytest.approx(1e-4, rel=1e-3)


@pytest.mark.parametrize("edits", [0.5, 2.0, 5.0, 40.0])
def test_builds_are_as_many_as_edits_at_random_cause(edits: float) -> None:
    build, chance = 0.02, random.Random(1)
    builds, now, level = 0, 0.0, 0
    next_edit = chance.expovariate(edits)
    while now < 20_000 / edits:  # as loaders.claims has it: at once, then after pauses that double
        began = max(now, next_edit)
        level = level + 1 if builds and next_edit < now else 0
        builds, now = builds + 1, began + build + PACES[min(level, len(PACES) - 1)]
        next_edit = began + chance.expovariate(edits)  # what came up to its beginning is in the build

    assert builds_of(edits, build)[0] == pytest.approx(builds / now, rel=0.03)


@given(st.integers(1, 10**7), st.floats(0, 3))
def test_all_projects_share_all_edits(projects: int, zipf: float) -> None:
    groups = list(ranks(projects, zipf))

    assert sum(number for number, _ in groups) == projects
    assert sum(number * share for number, share in groups) == pytest.approx(1)
    assert all(after[1] <= before[1] for before, after in pairwise(groups))


# ---- what an account needs


@given(accounts)
@example(Account(projects=8_517_989, edits=0.0, zipf=0.5))  # so few of each project that a difference was negative
def test_more_edits_never_leave_fewer_waiting_or_a_smaller_log(account: Account) -> None:
    found, more = load(), replace(account, edits=account.edits * 1.5 + 0.1)

    assert editing(more, more.edits, 0.02).dirty >= editing(account, account.edits, 0.02).dirty
    assert size(found, more).storage["fw_changes"] >= size(found, account).storage["fw_changes"]
    assert size(found, more).midnight >= size(found, account).midnight * 0.999


def test_more_edits_of_many_projects_need_more_of_everything(costs: Costs) -> None:
    sizings = [size(costs, Account(edits=edits)) for edits in (1, 10, 100, 1_000, 10_000)]

    for name in ("workers of edits", "PostgreSQL", "Redis: broker"):
        needs = [each.cores[name] for each in sizings]
        assert needs == sorted(needs), name


@given(accounts)
def test_twice_the_projects_and_all_else_equal_take_twice_the_cache(account: Account) -> None:
    found = load()

    one, other = size(found, account), size(found, replace(account, projects=2 * account.projects))

    for name in ("bundles", "focus bundles", "who may read what"):
        assert other.cache[name] == pytest.approx(2 * one.cache[name])
    assert other.storage["fw_projects"] == pytest.approx(2 * one.storage["fw_projects"])
    assert other.cache["briefs"] == one.cache["briefs"]


def test_an_account_of_another_size_has_its_rates_and_people_in_proportion() -> None:
    account = Account().at(1_000)

    assert (account.projects, account.edits, account.users) == (1_000, 0.25, 200)
    assert (account.zone, account.peak, account.theirs) == (0.4, 4.0, 5.0)


def test_midnight_takes_as_long_as_the_relay_lets_it(costs: Costs) -> None:
    account = Account(projects=10**6, edits=0, zone=1)
    most = windows(WINDOW)[SWEEP] / POLL_SECONDS

    assert size(costs, account.at(1000)).midnight == SPREAD_SECONDS
    assert size(costs, account).midnight >= 10**6 / most
    assert size(costs, replace(account, window=10 * WINDOW)).midnight < 10**6 / most / 9


def test_a_worker_has_no_more_children_than_its_main_process_serves(costs: Costs) -> None:
    found = size(costs, Account(children=256))

    served = found.workers[EDITS] * 0.6 * 1000 / costs.build.worker
    assert served >= found.rates["builds for edits"]


def test_a_relay_sends_a_window_each_look_and_fewer_when_many_wait(costs: Costs) -> None:
    sent = [looking(costs, dirty).most(EDITS) for dirty in (0, 16, 200, 2000, 10**6)]

    assert sent == sorted(sent, reverse=True)
    assert sent[0] <= windows(WINDOW)[EDITS] / POLL_SECONDS
    assert sent[-1] == sent[-2]  # it looks at no more than a page


def test_what_holds_up_to_a_number_of_projects_does_so_there_and_not_beyond(costs: Costs) -> None:
    for limit in size(costs, Account()).limits:
        most = holds(costs, Account(), limit.name)
        if most < 1e9:
            at = {one.name: one.load for one in size(costs, Account().at(round(most * 0.98))).limits}
            beyond = {one.name: one.load for one in size(costs, Account().at(round(most * 1.05))).limits}
            assert at[limit.name] <= 1 <= beyond[limit.name], limit.name


def test_a_relay_keeps_up_with_the_edits_that_it_is_said_to(costs: Costs) -> None:
    account = Account()
    edits = keeps_up(costs, account)

    found = editing(account, edits, 0.02)

    assert found.builds == pytest.approx(looking(costs, found.dirty).most(EDITS), rel=0.05)


def test_every_assumption_about_the_account_changes_something(costs: Costs) -> None:
    by_name = {each.name: each for each in doubled(costs, Account())}

    assert by_name["zone"].tightest == pytest.approx(2)
    assert by_name["kept"].storage > 1.5
    assert by_name["edits"].cores > 1.1
    assert all(each.says for each in assumed().values())


# ---- command and page


def test_the_command_prints_what_an_account_needs(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--costs", "default", "--json", "--projects", "50000", "--edits", "20", "--sizes", "20:0.9,500:0.1"])

    found = json.loads(capsys.readouterr().out)
    assert [each["account"]["projects"] for each in found["sizings"]] == [50, 500, 5_000, 50_000]
    assert found["sizings"][-1]["account"]["sizes"] == [[20, 0.9], [500, 0.1]]
    assert found["findings"]


def test_the_command_prints_tables(capsys: pytest.CaptureFixture[str]) -> None:
    main([])

    said = capsys.readouterr().out
    assert "binds first" in said
    assert "--zipf" in said


def test_a_file_that_is_no_measurement_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "costs.json").write_text('{"machine": "none"}', encoding="utf-8")

    with pytest.raises(SystemExit) as ended:
        main(["--costs", str(tmp_path / "costs.json")])

    assert ended.value.code == 2
    assert "is no measurement" in capsys.readouterr().err


def test_costs_are_kept_as_they_are(costs: Costs, tmp_path: Path) -> None:
    save(costs, tmp_path / "costs.json")

    assert load(tmp_path / "costs.json") == costs


@pytest.mark.promise("capacity.page")
def test_the_page_has_the_figures_of_the_model_and_of_the_measurement_that_ships(costs: Costs) -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert filled(page, costs, Account()) == page, "run `make capacity ARGS=--page`"
    assert page.count("<!-- from the model:") == page.count("<!-- end -->") == 12
