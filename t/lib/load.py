"""Clients that go on and on, and what they saw."""

import collections
import threading
import time

from lib.wire import Wire


class Load:
    """count threads call once(connection) until stop().

    once returns a status; results counts them.  A request that gets no answer
    counts as "lost", one that waits longer than `patience` as "hung".  With
    keep=False each request has a connection of its own; a kept connection
    that is closed between two requests is opened again, as clients do.
    """

    def __init__(self, port, once, count=8, keep=True, patience=20.0):
        self.port = port
        self.once = once
        self.keep = keep
        self.patience = patience
        self.results = collections.Counter()
        self.lock = threading.Lock()
        self.going = True
        self.threads = [threading.Thread(target=self._run)
                        for _ in range(count)]

    def _run(self):
        connection, fresh = None, True
        while self.going:
            try:
                if connection is None:
                    connection, fresh = Wire(self.port, self.patience), True
                result = self.once(connection)
                fresh = False
            except TimeoutError:
                result = "hung"
            except OSError:
                result = "lost" if fresh else None
            if result is not None:
                with self.lock:
                    self.results[result] += 1
            if not isinstance(result, int) or not self.keep:
                if connection is not None:
                    connection.close()
                connection = None
                if result == "lost":
                    time.sleep(0.01)
        if connection is not None:
            connection.close()

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.going = False
        for t in self.threads:
            t.join()
        return self.results

    def total(self):
        with self.lock:
            return sum(self.results.values())

    def wait_for_more(self, number, seconds=30):
        """Until so many further answers have come."""
        goal, end = self.total() + number, time.monotonic() + seconds
        while self.total() < goal:
            assert time.monotonic() < end, f"stalled: {self.results}"
            time.sleep(0.01)
