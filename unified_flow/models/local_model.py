"""The local model as every other one: its server is started by the first call that needs it."""

from __future__ import annotations

import asyncio
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import httpx

from unified_flow.models import ModelCall, ModelReply
from unified_flow.models.openai.model import OpenAIModel
from unified_flow.servers.llama_server import ALIAS, LocalModelError, LocalServer, warm_address

_ENDING_S = 0.5


@dataclass(eq=False)
class LocalModel:
    """`state` is the folder where a warm server of `unified-flow model serve` is noted."""

    name: str
    path: Path
    _: KW_ONLY
    state: Path
    context_tokens: int
    start_timeout_s: float
    timeout_s: float
    _served: OpenAIModel | None = None

    def __post_init__(self) -> None:
        self._server = LocalServer(
            self.path, context_tokens=self.context_tokens, start_timeout_s=self.start_timeout_s
        )

    @property
    def pid(self) -> int | None:
        """The id of the process that this model has started, if it has."""
        return self._server.pid

    async def complete(self, call: ModelCall) -> ModelReply:
        """Raises what OpenAIModel raises, ConfigError, and LocalModelError."""
        served = await self.served()
        try:
            return await served.complete(call)
        except httpx.TransportError as exc:
            # A process that is being killed loses its connections before it has ended.
            if ended := await asyncio.to_thread(self._server.died, _ENDING_S):
                raise LocalModelError(
                    f"the process of {self.path.name} died while it answered: {ended}",
                    hint="the next call starts it again; with too little memory it dies again",
                ) from exc
            if self._server.pid is None and not isinstance(exc, httpx.TimeoutException):
                raise LocalModelError(
                    f"the server that `unified-flow model serve` keeps for {self.path.name} went"
                    " away while it answered",
                    hint="its terminal says why; the next call starts a process of its own",
                ) from exc
            raise

    async def aclose(self) -> None:
        if self._served is not None:
            await self._served.aclose()
        await asyncio.to_thread(self._server.stop)

    async def served(self) -> OpenAIModel:
        """The model at its server, which is started if none runs. Raises as `complete` does."""
        address = await asyncio.to_thread(
            lambda: warm_address(self.state, self.path) or self._server.start()
        )
        if self._served is None or str(self._served.server.base_url) != address.url:
            if self._served is not None:
                await self._served.aclose()
            self._served = OpenAIModel(
                self.name,
                address.url,
                ALIAS,
                api_key=address.key,
                timeout_s=self.timeout_s,
            )
        return self._served
