"""The only doors to Channels and django-q2: wake, publish, subscribe, nudge."""
