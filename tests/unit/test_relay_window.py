"""How many messages a relay has under way is the setting's to say."""

from types import SimpleNamespace
from typing import Any

from loaders.claims import EDITS, SWEEP
from worker.relay import Relay, windows
from worker.settings import WINDOW, from_environment
from worker.wiring import Services


def windows_of(**environment: str) -> Any:
    builders: Any = SimpleNamespace(audit=None)
    services = Services(database_url="", redis_url="redis://127.0.0.1:1", broker_url="")
    return vars(Relay(from_environment(environment), services, None, builders))["_windows"]


def test_the_window_of_edits_is_the_setting_s_and_the_sweep_has_a_quarter_of_it() -> None:
    assert windows_of() == windows(WINDOW) == {EDITS: 16, SWEEP: 4}
    assert windows_of(FOREWORD_WINDOW="200") == {EDITS: 200, SWEEP: 50}
