"""Ending with the process that started this one, however that one ended: also by SIGKILL, which tells nobody."""

import ctypes
import os
import signal
import sys
from collections.abc import MutableMapping

VARIABLE = "FW_PARENT"
"""The environment variable with the pid of whom to end with. No setting: only who starts a child sets it."""

_PR_SET_PDEATHSIG = 1


def follow_parent(environment: MutableMapping[str, str]) -> bool:
    """Have the kernel send SIGTERM when the parent that ``environment`` names is gone; nothing where it names
    none. False when it is gone already. The variable is taken out: it is about us, and not about our children.

    Only Linux can; elsewhere a child outlives a parent that was killed.
    """
    parent = environment.pop(VARIABLE, "")
    if not parent:
        return True
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    return os.getppid() == int(parent)  # asked afterwards: it may have gone before the kernel was told
