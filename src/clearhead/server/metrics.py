"""What is told of each request: a line in the log, and numbers for Prometheus. Never a prompt or a token."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clearhead.server.model_registry import ModelRegistry


class ServerMetrics:
    """Counts of what was asked and written."""

    def __init__(self, registry: ModelRegistry) -> None:
        self.collectors = CollectorRegistry()
        self.requests = Counter(
            "clearhead_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self.collectors,
        )
        self.seconds = Histogram(
            "clearhead_request_seconds", "Until the answer was sent.", ["route"], registry=self.collectors
        )
        self.tokens = Counter(
            "clearhead_tokens", "Tokens read and written.", ["kind"], registry=self.collectors
        )
        self.collectors.register(EngineCollector(registry))

    def render(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.collectors)


class EngineCollector(Collector):
    """What the engines do at the moment; models come and go."""

    def __init__(self, registry: ModelRegistry) -> None:
        self.registry = registry

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, what in (
            ("waiting", "Requests that wait for a slot."),
            ("running", "Texts that are being written."),
        ):
            gauge = GaugeMetricFamily(f"clearhead_{name}", what, labels=["model"])
            for each in self.registry:
                if each.engine is not None:
                    gauge.add_metric([each.name], getattr(each.engine, name))
            yield gauge


class RequestLogMiddleware:
    """Around everything: also what is refused is told of."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics, log: Callable[[str], object]) -> None:
        self.app, self.metrics, self.log = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), [0]

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            seconds = time.perf_counter() - start
            # The route's own pattern: what a client writes into an address is not for the log.
            route = getattr(scope.get("route"), "path", "-")
            method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "-"
            self.metrics.requests.labels(method, route, str(status[0])).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            noted = scope.get("state", {}).get("noted", "")
            moment = time.strftime("%Y-%m-%dT%H:%M:%S")
            self.log(f"{moment} {method} {route} {status[0] or 'left'} {seconds * 1000:.0f} ms{noted}")
