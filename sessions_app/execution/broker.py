"""The queue's broker: django-q2's ORM broker, first in first out, at home with a database that goes away."""

from django_q.brokers.orm import ORM


class SafeOrmBroker(ORM):
    """The ORM broker."""
