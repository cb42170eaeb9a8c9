"""Processes as /proc tells: descendants, CPU time, memory."""

import ctypes
import os
import re
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
CAP_SYS_PTRACE = 19
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def become_subreaper():
    """Orphans of our children become our children: nothing can hide."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def may_trace():
    """Whether processes that hide from their own user are open to us."""
    with open("/proc/self/status", encoding="ascii") as f:
        effective = int(re.search(r"CapEff:\s*(\w+)", f.read())[1], 16)
    return bool(effective & 1 << CAP_SYS_PTRACE)


def stat(pid):
    """(comm, state, ppid, ticks) of a process; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8",
                  errors="replace") as f:
            text = f.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    comm = text[text.index("(") + 1:text.rindex(")")]
    rest = text[text.rindex(")") + 2:].split()
    return comm, rest[0], int(rest[1]), int(rest[11]) + int(rest[12])


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def environ(pid):
    """The environment a process was started with, as a dict."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            items = f.read().split(b"\0")
    except OSError:
        return {}
    return dict(i.decode(errors="replace").split("=", 1)
                for i in items if b"=" in i)


def descendants(root):
    """Pids of all living descendants of root (zombies left out)."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            s = stat(int(name))
            if s and s[1] not in "ZX":
                children.setdefault(s[2], []).append(int(name))
    found, todo = [], [root]
    while todo:
        kids = children.get(todo.pop(), [])
        found += kids
        todo += kids
    return found


def named(root, comm):
    """Descendants of root whose name is comm."""
    result = []
    for pid in descendants(root):
        s = stat(pid)
        if s and s[0] == comm:
            result.append(pid)
    return result


def alive(pid):
    s = stat(pid)
    return s is not None and s[1] not in "ZX"


def reap_orphans(keep):
    """Collects adopted children that have ended; keep: pids of Popen's."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        s = stat(int(name))
        if s and s[1] == "Z" and s[2] == os.getpid() \
                and int(name) not in keep:
            try:
                os.waitpid(int(name), os.WNOHANG)
            except ChildProcessError:
                pass


def cpu_seconds(pids):
    return sum(s[3] for s in map(stat, pids) if s) / TICK


def peak_bytes(pid):
    """The most memory that it has had."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) * 1024


def pss_bytes(pid):
    """Proportional memory, so that shared arenas are counted once."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            for line in f:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def held_bytes(pids):
    """Memory that processes have written, shared arenas once; files and
    libraries left out."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            total += sum(int(n) << 10 for n in re.findall(
                r"^Pss_(?:Anon|Shmem): +(\d+) kB", f.read(), re.M))
    return total


def threads(pid):
    """How many threads the process has."""
    return len(os.listdir(f"/proc/{pid}/task"))


def descriptors(pid):
    """How many files the process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def stop(pid):
    """SIGSTOP; on a busy machine threads run on for a while after it."""
    os.kill(pid, signal.SIGSTOP)
    tasks = f"/proc/{pid}/task"
    assert wait_until(lambda: all(
        s is None or s[1] in "TZX"
        for s in (stat(f"{pid}/task/{task}") for task in os.listdir(tasks))),
        60), f"process {pid} did not stop"


def wait_until(condition, seconds, step=0.02):
    """condition()'s first true value; its last value when time is over."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(step)
