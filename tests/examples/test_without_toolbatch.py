"""The loop by hand is refused, in each provider's own words."""

from examples.without_toolbatch import refusals


async def test_every_api_refuses_the_request_after_a_stop(nothing_left: None) -> None:
    """The 400 names the call that has no result."""
    assert await refusals() == {
        "Chat Completions": (
            "400: An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: call_1"
        ),
        "Responses": "400: No tool output found for function call call_1.",
        "Messages": (
            "400: messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: call_1. Each "
            "`tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
    }
