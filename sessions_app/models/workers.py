"""A process that can own sessions."""

from django.db import models

from sessions_app.models.fields import identity, word


class Worker(models.Model):
    """One life of one process. A process that was declared dead registers anew under another id."""

    id = identity()
    host = models.CharField(max_length=255)
    boot_id = models.CharField(max_length=64)
    kind = word()
    pid = models.IntegerField()
    lock_path = models.CharField(max_length=1000)
    lock_device = models.BigIntegerField()
    lock_inode = models.BigIntegerField()
    started_at = models.DateTimeField()
    heartbeat_count = models.BigIntegerField(default=0)
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True)
    dead_at = models.DateTimeField(null=True, blank=True)
    death = word(blank=True, default="")
    """How death was established: proved or assumed; empty while it was not."""

    class Meta:
        ordering = ["-started_at"]
        indexes = [
            models.Index(
                fields=["heartbeat_at"],
                name="worker_presumed_alive",
                condition=models.Q(stopped_at__isnull=True, dead_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.id
