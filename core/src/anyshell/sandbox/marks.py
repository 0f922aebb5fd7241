"""Marks: how every process that a command started is found and ended, wherever it went.

Before the model's line runs, the shell sets its soft RLIMIT_LOCKS to the command's mark. Linux has ignored that limit
since 2.4, so it restrains nothing; but it is inherited over fork, exec, setsid and daemonising, can be read in
`/proc/PID/limits`, and is in no environment. A mark is the owner's number times 2**20 plus the command's number.

This module is also imported by the watcher process, so it uses the standard library only.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Collection, Iterator

COMMANDS_PER_OWNER = 1 << 20
"""How many commands one owner number can mark."""

LINUX = os.path.isdir('/proc/self/task')
"""Whether processes can be found by their mark. Elsewhere (macOS) only process groups are ended."""

RLIMIT_LOCKS = 10
"""linux/asm-generic/resource.h; Python has no name for it."""

_LIMIT = b'Max file locks'


def mark_range(owner: int) -> tuple[int, int]:
    """The marks of all commands of an owner, as a half-open range."""
    return owner * COMMANDS_PER_OWNER, (owner + 1) * COMMANDS_PER_OWNER


def lowered() -> int | None:
    """The hard limit of this process when it is too low for marks (`ulimit -H -x`, systemd's `LimitLOCKS=`); else `None`."""
    most = resource.getrlimit(RLIMIT_LOCKS)[1] if LINUX else resource.RLIM_INFINITY
    return None if most == resource.RLIM_INFINITY or most >= 1 << 62 else most


def unmark() -> None:
    """Take the mark off this process, which a command of another session may have started."""
    if LINUX:
        _, most = resource.getrlimit(RLIMIT_LOCKS)
        resource.setrlimit(RLIMIT_LOCKS, (most, most))


def is_marked(pid: int) -> bool:
    """Whether a live process of this user carries any mark."""
    try:
        soft, hard = resource.prlimit(pid, RLIMIT_LOCKS)
    except (AttributeError, OSError):
        return False
    return soft != hard


def marked(low: int, high: int) -> Iterator[int]:
    """The live processes whose mark is in `low` … `high` - 1; zombies are not alive."""
    if not LINUX:
        return
    # The newest first: a process that lives on by forking and ending has a new number before a scan gets to the old one.
    for name in reversed(os.listdir('/proc')):
        if name.isdecimal() and low <= _mark(name) < high and not _is_zombie(name):
            yield int(name)


def signal_marked(low: int, high: int, number: int, *, told: Collection[int] = ()) -> int:
    """Send a signal to every live process in the range, and return how many there were.

    Args:
        low: The first mark.
        high: The mark after the last.
        number: The signal.
        told: The process groups that have had it: who is in one of them is counted only.
    """
    count = 0
    for pid in marked(low, high):
        if (told and _group(pid) in told) or _signal(pid, low, high, number):
            count += 1
    return count


def kill_marked(low: int, high: int, *, limit: float = 2.0) -> bool:
    """Send SIGKILL until two scans in a row find nobody: one scan races with processes that fork.

    Args:
        low: The first mark.
        high: The mark after the last.
        limit: Seconds after which to give up on processes that the kernel can't end (uninterruptible sleep).

    Returns:
        Whether nothing is left.
    """
    end = time.monotonic() + limit
    clean = 0
    while True:
        clean = 0 if signal_marked(low, high, signal.SIGKILL) else clean + 1
        if clean == 2:
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.001)


def _mark(pid: str) -> int:
    try:
        # One system call, where reading the text makes the kernel write all sixteen limits: a scan takes a tenth.
        return resource.prlimit(int(pid), RLIMIT_LOCKS)[0]
    except ProcessLookupError:
        return -1
    except (AttributeError, OSError):
        # Another user's process, such as a set-user-ID program, or prlimit(2) is forbidden.
        return _mark_as_text(pid)


def _mark_as_text(pid: str) -> int:
    try:
        with open(f'/proc/{pid}/limits', 'rb', buffering=0) as file:
            limits = file.read(4096)
        start = limits.index(_LIMIT) + len(_LIMIT)
        return int(limits[start : start + 40].split(None, 1)[0])
    except (OSError, ValueError):  # it has gone, or the limit is "unlimited"
        return -1


def _is_zombie(pid: str) -> bool:
    try:
        with open(f'/proc/{pid}/stat', 'rb', buffering=0) as file:
            # The name in parentheses may hold anything, so the state is what follows the last one.
            return file.read(4096).rpartition(b')')[2].split(None, 1)[0] in {b'Z', b'X'}
    except (OSError, IndexError):
        return True


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:  # it has just ended
        return 0


def _signal(pid: int, low: int, high: int, number: int) -> bool:
    """Signal a process, but not one that took its number since we looked."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (
        AttributeError,
        OSError,
    ):  # a kernel before 5.3 or one that forbids it, or no descriptor is left
        descriptor = -1
    try:
        if not low <= _mark(str(pid)) < high:
            return False
        _send(pid, descriptor, number)
        if number == signal.SIGTERM:
            _send(pid, descriptor, signal.SIGCONT)  # a stopped process acts on nothing else
    except OSError:  # it has just ended, or is another user's
        return False
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return True


def _send(pid: int, descriptor: int, number: int) -> None:
    if descriptor >= 0:
        signal.pidfd_send_signal(descriptor, number)
    else:
        os.kill(pid, number)
