"""The REST interface of Azure's Multivariate Anomaly Detector, for clients that used it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vace_ad.app import mvad
from vace_ad.atomic import whole_file
from vace_ad.detector import load
from vace_ad.errors import VaceError
from vace_ad.live.models import Worker
from vace_ad.live.server.limits import Handler, body_of, number, routes_of

log = logging.getLogger("vace_ad.live")
BASE = "/anomalydetector/v1.1/multivariate"
MODELS = ".vace-models"  # in the folder of the data
MOST = 300  # models
KEPT = 100  # results of batches, the newest
CREATED, RUNNING, READY, FAILED = "CREATED", "RUNNING", "READY", "FAILED"
_Body = TypeVar("_Body", bound=BaseModel)


class ServiceError(Exception):
    """An error as the interface words it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Multivariate:
    """Models of a folder of data: trained, listed, used and deleted by requests."""

    def __init__(self, folder: Path, body: int) -> None:
        self._folder, self._body = folder, body
        self._models = folder / MODELS
        self._models.mkdir(parents=True, exist_ok=True)
        self._results: dict[str, dict[str, Any]] = {}
        for file in self._models.glob("*.json"):
            known = self._read(file.stem)
            if known["modelInfo"]["status"] in (CREATED, RUNNING):
                self._end(known, "Interrupted", "the service stopped meanwhile; train again")
        self._worker = Worker("multivariate")

    def routes(self) -> list[Route]:
        """The seven operations."""
        handlers = {
            f"POST {BASE}/models": self.train, f"GET {BASE}/models": self.models,
            f"POST {BASE}/models/{{model}}:detect-batch": self.detect_batch,
            f"POST {BASE}/models/{{model}}:detect-last": self.detect_last,
            f"GET {BASE}/models/{{model}}": self.model,
            f"DELETE {BASE}/models/{{model}}": self.delete,
            f"GET {BASE}/detect-batch/{{result}}": self.result,
        }  # fmt: skip
        return routes_of({name: _with_errors(handler) for name, handler in handlers.items()})

    def _start(self, job: Callable[[], None]) -> None:
        self._worker.submit(job).add_done_callback(_report)

    # ------------------------------------------------------------------- models

    async def train(self, request: Request) -> Response:
        """Create a model and train it; the answer comes before that is done."""
        info = await self._parsed(request, mvad.TrainRequest)
        place = mvad.source_path(self._folder, info.data_source)
        if len(list(self._models.glob("*.json"))) >= MOST:
            raise ServiceError(400, "TooManyModels", f"{MOST} models are kept; delete one first")
        now, name = _now(), str(uuid4())
        plain = info.model_dump(mode="json", by_alias=True)
        known = {"modelId": name, "createdTime": now, "lastUpdatedTime": now,
                 "modelInfo": {**plain, "status": CREATED, "errors": []}}  # fmt: skip
        self._write(known)
        self._start(lambda: self._train(known, info, place))
        return JSONResponse(known, 201, {"location": f"{_base(request)}/models/{name}"})

    def _train(self, known: dict[str, Any], info: mvad.TrainRequest, place: Path) -> None:
        if not self._file(known["modelId"]).is_file():
            return  # deleted meanwhile
        known["modelInfo"]["status"] = RUNNING
        self._write(known)
        try:
            table = mvad.table_of(mvad.read_source(place, info))
            states = mvad.variable_states(table, *mvad.rows_between(
                table, info.start_time, info.end_time))  # fmt: skip
            mvad.train(table, info).save(self._file(known["modelId"], "vace"))
        except Exception as error:  # the client asks for it, and nobody else hears of it
            self._end(known, "TrainFailed", _sentence(error))
            return
        state = {"modelState": mvad.model_state(), "variableStates": states}
        known["modelInfo"] |= {"status": READY, "diagnosticsInfo": state}
        self._write(known)

    def _end(self, known: dict[str, Any], code: str, message: str) -> None:
        errors = [{"code": code, "message": message}]
        known["modelInfo"] |= {"status": FAILED, "errors": errors}
        self._write(known)

    async def models(self, request: Request) -> Response:
        """List the models, the newest first."""
        every = [self._read(file.stem) for file in self._models.glob("*.json")]
        every.sort(key=lambda one: str(one["createdTime"]), reverse=True)
        skip = number(request.query_params.get("skip"), 0, 0, MOST)
        top = number(request.query_params.get("top"), 10, 1, MOST)
        more = skip + top < len(every)
        link = f"{_base(request)}/models?skip={skip + top}&top={top}" if more else ""
        return JSONResponse(
            {"models": every[skip : skip + top], "currentCount": len(every), "maxCount": MOST,
             "nextLink": link}
        )  # fmt: skip

    async def model(self, request: Request) -> Response:
        """Describe a model and the state of its training."""
        return JSONResponse(self._read(request.path_params["model"]))

    async def delete(self, request: Request) -> Response:
        """Delete a model."""
        name = self._read(request.path_params["model"])["modelId"]
        for kind in ("json", "vace"):
            self._file(name, kind).unlink(missing_ok=True)
        return Response(status_code=204)

    # ---------------------------------------------------------------- detection

    async def detect_batch(self, request: Request) -> Response:
        """Detect in a data source; the answer comes before that is done."""
        known = self._ready(request)
        wanted = await self._parsed(request, mvad.BatchRequest)
        place = mvad.source_path(self._folder, wanted.data_source)
        name = str(uuid4())
        summary = {"status": CREATED, "errors": [], "variableStates": [],
                   "setupInfo": wanted.model_dump(mode="json", by_alias=True)}  # fmt: skip
        result: dict[str, Any] = {"resultId": name, "summary": summary, "results": []}
        self._results[name] = result
        while len(self._results) > KEPT:
            del self._results[next(iter(self._results))]
        self._start(lambda: self._detect(result, known, wanted, place))
        where = f"{_base(request)}/detect-batch/{name}"
        return JSONResponse(result, 202, {"operation-id": name, "operation-location": where})

    def _detect(
        self, result: dict[str, Any], known: dict[str, Any], wanted: mvad.BatchRequest, place: Path
    ) -> None:
        summary = result["summary"]
        summary["status"] = RUNNING
        try:
            info = mvad.TrainRequest.model_validate(known["modelInfo"])
            detector = load(self._file(known["modelId"], "vace"))
            table = mvad.table_of(mvad.read_source(place, info), tuple(detector.channels_))
            a, b = mvad.rows_between(table, wanted.start_time, wanted.end_time)
            summary["variableStates"] = mvad.variable_states(table, a, b)
            result["results"] = mvad.detect(detector, table[:b], a, wanted.top_contributor_count)
            summary["status"] = READY
        except Exception as error:  # the client asks for it, and nobody else hears of it
            summary["errors"] = [{"code": "DetectFailed", "message": _sentence(error)}]
            summary["status"] = FAILED

    async def result(self, request: Request) -> Response:
        """The results of a batch."""
        name = request.path_params["result"]
        if name not in self._results:
            words = f"no result {name!r}; the last {KEPT} are kept until the service stops"
            raise ServiceError(404, "ResultNotExist", words)
        return JSONResponse(self._results[name])

    async def detect_last(self, request: Request) -> Response:
        """Detect in the rows of the request, in those after the sliding window."""
        known = self._ready(request)
        wanted = await self._parsed(request, mvad.LastRequest)
        return JSONResponse(await run_in_threadpool(self._last, known, wanted))

    def _last(self, known: dict[str, Any], wanted: mvad.LastRequest) -> dict[str, Any]:
        detector = load(self._file(known["modelId"], "vace"))
        frame = mvad.last_frame(wanted, self._folder)
        table = mvad.table_of(frame, tuple(detector.channels_))
        first = min(known["modelInfo"]["slidingWindow"], len(table) - 1)
        results = mvad.detect(detector, table, first, wanted.top_contributor_count)
        return {"variableStates": mvad.variable_states(table), "results": results}

    # --------------------------------------------------------------------- files

    def _file(self, name: str, kind: str = "json") -> Path:
        return self._models / f"{name}.{kind}"

    def _read(self, name: str) -> dict[str, Any]:
        try:
            text = self._file(str(UUID(name))).read_text("utf-8")
        except (ValueError, OSError):
            raise ServiceError(404, "ModelNotExist", f"no model {name!r}") from None
        known: dict[str, Any] = json.loads(text)
        return known

    def _write(self, known: dict[str, Any]) -> None:
        known["lastUpdatedTime"] = _now()
        with whole_file(self._file(known["modelId"])) as draft:
            Path(draft).write_text(json.dumps(known), "utf-8")

    def _ready(self, request: Request) -> dict[str, Any]:
        known = self._read(request.path_params["model"])
        status = known["modelInfo"]["status"]
        if status != READY:
            words = f"the model is {status}; it can be used once it is {READY}"
            raise ServiceError(400, "ModelNotReady", words)
        return known

    async def _parsed(self, request: Request, kind: type[_Body]) -> _Body:
        body = await body_of(request, self._body)
        try:
            return kind.model_validate_json(body)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the body"
            raise ServiceError(400, "InvalidParameter", f"{place}: {first['msg']}") from None


def _with_errors(handler: Handler) -> Handler:
    """A handler that answers its errors as the interface does."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except ServiceError as error:
            status, code, message = error.status, error.code, str(error)
        except VaceError as error:
            status, code, message = 400, "InvalidParameter", str(error)
        return JSONResponse({"code": code, "message": message}, status, {"x-ms-error-code": code})

    return answer


def _report(done: Future[None]) -> None:
    """Log what a job did not tell its client, such as a full disk."""
    error = done.exception()
    if error is not None:
        log.error("multivariate: %s", error, exc_info=error)


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/") + BASE


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, VaceError) else f"{type(error).__name__}: {error}"
