"""Answers in an application of your own: python examples/fastapi_app.py, then

curl localhost:8080/answers -H 'content-type: application/json' -d '{"question": "What is a turn?"}'
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from unified_flow import InputError, PhaseError, UnifiedFlow


class Question(BaseModel):
    question: str
    session_id: str = "everybody"


class Answer(BaseModel):
    answer: str | None
    sources: list[str]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with UnifiedFlow.from_config(docs="architecture") as flow:
        app.state.flow = flow
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/answers")
async def answers(asked: Question, request: Request) -> Answer:
    turn = await request.app.state.flow.process(asked.session_id, asked.question)
    return Answer(answer=turn.response, sources=[each.source for each in turn.citations])


@app.exception_handler(PhaseError)
async def failed(_: Request, error: PhaseError) -> JSONResponse:
    """The text is safe to show; an engineer finds the rest under the intervention's id."""
    content = {"message": error.user_safe_message, "intervention": error.intervention_id}
    return JSONResponse(content, status_code=502)


@app.exception_handler(InputError)
async def refused(_: Request, error: InputError) -> JSONResponse:
    return JSONResponse({"message": str(error)}, status_code=400)


if __name__ == "__main__":
    uvicorn.run(app, port=8080)
