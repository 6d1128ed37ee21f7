"""Who gets in, and by what secret. Secrets are shown once and stored as digests only."""

from sessions_app.access.tokens import Bearer, NewToken, create_token, find_bearer, find_user, revoke_token

__all__ = ["Bearer", "NewToken", "create_token", "find_bearer", "find_user", "revoke_token"]
