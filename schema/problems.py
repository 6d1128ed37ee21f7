"""What is refused, and how a caller is told: one family of errors with a stable code and a status."""

from typing import ClassVar

from pydantic import JsonValue


class Problem(Exception):
    """A refusal with a stable ``code``; the text says what to do next."""

    code: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(detail)


class SessionNotFound(Problem):
    """No such session for this user. Another user's session answers the same."""

    code = "session_not_found"
    status = 404
    title = "Session not found"

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"Session {session_id!r} does not exist. Create it first, or check the id.")


class Throttled(Problem):
    """Too many requests came from this user or with this token. ``Retry-After`` says when to come again."""

    code = "throttled"
    status = 429
    title = "Too many requests"

    def __init__(self, *, exhausted: str, retry_after: int) -> None:
        self.exhausted = exhausted
        self.retry_after = retry_after
        super().__init__(f"Too many requests for one {exhausted}. Send this again in {retry_after} seconds.")


class PromptNotFound(Problem):
    code = "prompt_not_found"
    status = 404
    title = "Prompt not found"

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        super().__init__(f"Prompt {message_id!r} does not exist in this session.")


class MessageNotFound(Problem):
    code = "message_not_found"
    status = 404
    title = "Message not found"

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        super().__init__(f"Message {message_id!r} is not in the visible transcript of this session.")


class SessionBusy(Problem):
    """What was asked needs a session at rest."""

    code = "busy"
    status = 409
    title = "Session busy"

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"Session {session_id!r} is running, is about to, or waits for an answer of yours. "
            "Interrupt it first, then try again."
        )


class AttemptNotFound(Problem):
    code = "attempt_not_found"
    status = 404
    title = "Attempt not found"

    def __init__(self, attempt_id: str) -> None:
        self.attempt_id = attempt_id
        super().__init__(f"Attempt {attempt_id!r} does not exist.")


class SessionIdUnavailable(Problem):
    code = "session_id_unavailable"
    status = 409
    title = "Session id unavailable"

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"The id {session_id!r} cannot be used. Choose a new session id.")


class PromptConflict(Problem):
    """A message id is already known for something else, here or anywhere. It never says whose."""

    code = "prompt_conflict"
    status = 409
    title = "Prompt conflict"

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        super().__init__(
            f"Message {message_id!r} was already used for another prompt, session or delivery. "
            "Send the original request unchanged, or use a new message id."
        )


class AlreadyPromoted(Problem):
    code = "already_promoted"
    status = 409
    title = "Prompt already promoted"

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        super().__init__(
            f"Prompt {message_id!r} is already part of the transcript and can no longer be changed."
        )


class Withdrawn(Problem):
    code = "withdrawn"
    status = 409
    title = "Prompt withdrawn"

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        super().__init__(f"Prompt {message_id!r} was withdrawn. Send it again under a new message id.")


class PromptTooLarge(Problem):
    code = "prompt_too_large"
    status = 413
    title = "Prompt too large"

    def __init__(self, *, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(
            f"The prompt has {size} characters; at most {limit} are allowed. Shorten it or split it."
        )


class EmptyPrompt(Problem):
    code = "empty_prompt"
    status = 422
    title = "Empty prompt"

    def __init__(self) -> None:
        super().__init__("The prompt has no text. Write something before sending it.")


class CallNotFound(Problem):
    code = "tool_call_not_found"
    status = 404
    title = "Tool call not found"

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        super().__init__(f"Tool call {call_id!r} does not exist.")


class AlreadyDecided(Problem):
    """Decisions are made once; the one that was made is told."""

    code = "already_decided"
    status = 409
    title = "Already decided"

    def __init__(self, decision: dict[str, JsonValue]) -> None:
        self.decision = decision
        super().__init__(
            f"{decision.get('by', 'Somebody')} already decided this: {decision.get('action')}, "
            f"at {decision.get('at')}."
        )


class NotWaiting(Problem):
    code = "not_waiting"
    status = 409
    title = "Not waiting"

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        super().__init__(f"Tool call {call_id!r} does not wait for an approval.")


class NotUnknown(Problem):
    """Only an outcome that is not known can be decided or asked about."""

    code = "not_unknown"
    status = 409
    title = "Not unknown"

    def __init__(self, subject: str) -> None:
        self.subject = subject
        super().__init__(f"The outcome of {subject!r} is known; there is nothing to decide.")


class CannotAsk(Problem):
    code = "cannot_ask"
    status = 409
    title = "Cannot ask"

    def __init__(self, subject: str, why: str) -> None:
        self.subject = subject
        super().__init__(f"Nobody can be asked what became of {subject!r}: {why}")


class Superseded(Problem):
    """The conversation went on without this decision."""

    code = "superseded"
    status = 409
    title = "Superseded"

    def __init__(self, subject: str) -> None:
        self.subject = subject
        super().__init__(
            f"{subject!r} can no longer be decided like this: its step was stopped, or a newer turn exists."
        )


class InvalidId(Problem):
    code = "invalid_id"
    status = 400
    title = "Invalid id"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:80]!r} is not an id a client may choose. "
            "Ids match ^(ses|msg)_[A-Za-z0-9-]{8,64}$ and do not begin with msg_rec-."
        )


class InvalidValue(Problem):
    """A field has a value that cannot be used."""

    code = "invalid"
    status = 400
    title = "Invalid value"

    def __init__(self, *, field: str, detail: str) -> None:
        self.field = field
        super().__init__(detail)
