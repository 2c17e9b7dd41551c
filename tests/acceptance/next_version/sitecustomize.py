"""Makes of a Python process, and of its children, one of the version that has raised the layout.

On ``PYTHONPATH``, so that it runs before anything else. The module is loaded without its package, whose import
would derive the keys of today.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

_file = Path(__file__).parents[3] / "foreword" / "stamp.py"
_spec = spec_from_file_location("foreword.stamp", _file)
assert _spec is not None
assert _spec.loader is not None
_stamp: Any = module_from_spec(_spec)
sys.modules["foreword.stamp"] = _stamp
_spec.loader.exec_module(_stamp)
_stamp.SCHEMA += 1
_stamp._VERSIONS = frozenset(str(_stamp.SCHEMA - back) for back in (0, 1))
