"""Nodes that end with the test."""

import pytest

from lib.nodes import Node


@pytest.fixture
def make_nodes():
    made = []

    def make(*queues):
        made.extend(Node(q) for q in queues)
        return made[-len(queues):]

    yield make
    for node in made:
        node.stop()
