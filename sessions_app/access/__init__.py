"""Who gets in, and by what secret. Secrets are shown once and stored as digests only."""

from sessions_app.access.tokens import NewToken, create_token, find_user, revoke_token

__all__ = ["NewToken", "create_token", "find_user", "revoke_token"]
