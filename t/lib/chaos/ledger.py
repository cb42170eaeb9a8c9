"""The end of each request, and what may have ended it."""

import asyncio
import collections
import threading

ENDED = "the inference core ended before it answered"
LOST = "sequence lost, start again"
NO_START = "must specify the START flag"

# cores that died, workers that died, reloads, cores that ended anyhow
DEATHS, KILLS, RELOADS, ENDS = range(4)


class Marks:
    """How often each has begun, and how often that is over; written by the
    test's thread alone."""

    def __init__(self):
        self.begun = [0] * 4
        self.over = [0] * 4

    def begin(self, what, count=1):
        self.begun[what] += count

    def end(self, what):
        self.over[what] = self.begun[what]

    def now(self):
        """To be told to since()."""
        return tuple(self.over)

    def since(self, before):
        """How often each may have happened."""
        return [b - o for b, o in zip(self.begun, before)]


class Ledger:
    """The end of each request."""

    def __init__(self):
        self.marks = Marks()
        self.asked = {}         # client: ends before its last request
        self.lock = threading.Lock()
        self.results = collections.Counter()
        self.wrong = []

    def now(self):
        return self.marks.now()

    def ask(self):
        """now(), as a client sends a request."""
        try:
            client = asyncio.current_task().get_name()
        except RuntimeError:
            client = threading.current_thread().name
        self.asked[client] = self.marks.begun[ENDS]
        return self.now()

    def most_ends(self):
        """Of cores that one request has seen."""
        return self.marks.begun[ENDS] - min(list(self.asked.values()))

    def state(self):
        """Why nothing goes on: wrong answers, and the clients whose requests
        have seen the most ends."""
        most = self.most_ends()
        return "\n".join(self.wrong[:20] + [
            f"{client} has seen {most} ends of cores"
            for client, ends in list(self.asked.items())
            if self.marks.begun[ENDS] - ends == most])

    def answered(self, kind):
        with self.lock:
            self.results[kind, "answered"] += 1

    def count(self):
        with self.lock:
            return sum(n for (_, what), n in self.results.items()
                       if what == "answered")

    def lost(self, kind, before, error):
        """The connection has gone."""
        self._allow(self.marks.since(before)[KILLS], kind,
                    "lost with its worker", before, error)

    def closed(self, kind, before, error):
        """An idle connection was closed when a request was sent on it."""
        since = self.marks.since(before)
        self._allow(since[KILLS] or since[RELOADS], kind,
                    "closed while idle", before, error)

    def cut(self, kind, before, error):
        """After a response had come."""
        self._allow(ENDED in error and self.marks.since(before)[DEATHS],
                    kind, "ended with its core", before, error)

    def sequence_ended(self, began, before, error):
        """By the end of its core: the request under way has one error, the
        next one another."""
        self._allow(LOST in error and self.marks.since(before)[ENDS]
                    or NO_START in error and self.marks.since(began)[ENDS],
                    "sequences", "ended with its core", began, error)

    def unavailable(self, before, hint, error):
        """A call that is no inference; hint: Retry-After is there."""
        self._allow(hint and ENDED in error
                    and self.marks.since(before)[ENDS],
                    "control", "unavailable", before, error)

    def bad(self, kind, error):
        self._allow(False, kind, "bad", None, error)

    def _allow(self, allowed, kind, what, before, error):
        with self.lock:
            self.results[kind, what if allowed else "WRONG"] += 1
            if not allowed:
                self.wrong.append(
                    f"{kind}: not {what}: {str(error)[:400]} since"
                    f" {before and self.marks.since(before)}")
