"""The wire models of data-model.md, one module an entity, with every rule of that document.

`message.py` Message, `query_result.py` QueryResult, `failure.py` ErrorContext, `agents.py`
AgentResponse. They are immutable. pydantic loads with them; nothing heavier does.
"""
