"""An administrator's browser."""

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def administrator(db: None) -> User:
    return User.objects.create_superuser("root", password="a long enough one")


@pytest.fixture
def browser(administrator: User) -> Client:
    client = Client()
    client.force_login(administrator)
    return client
