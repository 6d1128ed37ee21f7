"""The people and what is theirs, made once a module; what a test changes is rolled back to it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from tests.access.people import Belongings, People


@pytest.fixture(scope="module")
def scene(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[People, Belongings]]:
    whole: Any = transaction.atomic()
    # As Django's own test case marks its transaction: durable ones may begin inside it.
    whole._from_testcase = True
    with django_db_blocker.unblock(), whole:
        visitors = People.arrive()
        yield visitors, visitors.owner_has()
        transaction.set_rollback(True)


@pytest.fixture
def visitors(scene: tuple[People, Belongings], db: None) -> People:
    return scene[0]


@pytest.fixture
def anns(scene: tuple[People, Belongings], db: None) -> Belongings:
    return scene[1]
