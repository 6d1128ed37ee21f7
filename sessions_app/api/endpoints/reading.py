"""Reading a session: its messages and its events."""

from django.http import HttpResponse

from schema import views
from sessions_app import log, sessions
from sessions_app.api import answers, bodies, paging
from sessions_app.api.endpoint import SessionEndpoint
from sessions_app.api.operation import operation


class Messages(SessionEndpoint):
    @operation("The transcript", query=bodies.MessagesQuery, answers={200: views.MessagePage})
    def get(self, *, session_id: str, query: bodies.MessagesQuery) -> HttpResponse:
        order = paging.Order(name="messages", columns=("seq",), direction=query.order)
        session = sessions.get(user_id=self.user_id, session_id=session_id)
        page = paging.cut(sessions.messages_of(session), order=order, query=query)
        return answers.json(page.shape(sessions.message_shapes(page.rows)))


class Events(SessionEndpoint):
    @operation("The log after a position", query=bodies.EventsQuery, answers={200: views.EventPage})
    def get(self, *, session_id: str, query: bodies.EventsQuery) -> HttpResponse:
        session = sessions.get(user_id=self.user_id, session_id=session_id)
        events = log.events_after(session_id, after=query.after, limit=query.limit)
        newest = events[-1].seq if events else query.after
        return answers.json(
            {
                "results": [sessions.event_shape(event) for event in events],
                "next_after": newest,
                # The session was read before its events: what came in between is already given.
                "head_seq": max(session.head_seq, newest if events else 0),
            }
        )
