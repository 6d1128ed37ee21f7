"""What all processes together have counted."""

from django.db import models


class Figure(models.Model):
    """One running total. Every process adds what it counted since it last did; nothing is ever taken away."""

    name = models.CharField(primary_key=True, max_length=100)
    value = models.FloatField(default=0)

    def __str__(self) -> str:
        return self.name
