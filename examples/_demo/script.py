"""What the model says, in order: the same for the three APIs. A real model would decide this by itself."""

from toolbatch.testing import Reply, ScriptedCall

SCRIPT = [
    # 1  Four tools at once
    Reply(
        "I'll look.",
        [
            ScriptedCall("call_1", "weather", {"city": "Oslo"}),
            ScriptedCall("call_2", "read_calendar", {"day": "Saturday"}),
            ScriptedCall("call_3", "exchange_rate", {"to": "NOK"}),
            ScriptedCall("call_4", "book_train", {"to": "Oslo"}),
        ],
    ),
    Reply("18 degrees and you are free. I got no rate, and I can't tell yet whether the train is booked."),
    # 2  The user presses Stop
    Reply(
        calls=[
            ScriptedCall("call_5", "book_hotel", {"city": "Oslo"}),
            ScriptedCall("call_6", "book_table", {"people": 2}),
            ScriptedCall("call_7", "order_flowers", {"kind": "Tulips"}),
        ]
    ),
    Reply("No flowers were ordered. The hotel and the table may be booked: I would check before trying again."),
    # 3  The user edits the question
    Reply(calls=[ScriptedCall("call_8", "find_flights", {"to": "Paris"})]),
    Reply(calls=[ScriptedCall("call_9", "find_flights", {"to": "Rome"})]),
    Reply("Rome: from 89 euros."),
    Reply("The search for Paris was replaced by a newer one. Shall I look again?"),
    # 4  The late results
    Reply("Good news: the train is booked after all, seat 14A, and so is the table."),
]
