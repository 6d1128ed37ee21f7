"""Changing what is pending: withdraw, or switch between steer and queue."""

from datetime import datetime

from schema.events import PromptDeliveryChanged, PromptWithdrawn
from schema.inputs import Delivery
from schema.problems import AlreadyPromoted, PromptNotFound, Withdrawn
from sessions_app.live import wakes
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import SessionInput


def withdraw(*, session_id: str, message_id: str, now: datetime) -> None:
    """Take a pending prompt back. Its id stays taken.

    Raises PromptNotFound, AlreadyPromoted when the model may have read it, or Withdrawn when it was taken
    back before: a repeat changes nothing and says so.
    """
    with session_transaction(session_id, now=now) as tx:
        prompt = _get(tx, message_id)
        if prompt.promoted_seq is not None:
            raise AlreadyPromoted(message_id)
        if prompt.withdrawn_seq is not None:
            raise Withdrawn(message_id)
        tx.append(PromptWithdrawn(message=message_id))


def change_delivery(*, session_id: str, message_id: str, delivery: Delivery, now: datetime) -> SessionInput:
    """Switch a pending prompt between steer and queue. The same delivery again changes nothing.

    Raises PromptNotFound, AlreadyPromoted or Withdrawn.
    """
    with session_transaction(session_id, now=now) as tx:
        prompt = _get(tx, message_id)
        if prompt.promoted_seq is not None:
            raise AlreadyPromoted(message_id)
        if prompt.withdrawn_seq is not None:
            raise Withdrawn(message_id)
        if prompt.delivery != delivery:
            tx.append(PromptDeliveryChanged(message=message_id, delivery=delivery))
            prompt.delivery = delivery
            if prompt.wake:
                wakes.enqueue(tx)
        return prompt


def _get(tx: SessionTransaction, message_id: str) -> SessionInput:
    prompt = SessionInput.objects.filter(pk=message_id, session_id=tx.session.pk).first()
    if prompt is None:
        raise PromptNotFound(message_id)
    return prompt
