"""The child process in which a kernel is compiled, runs or is refereed. Only it touches a GPU.

Started by confined.py, it answers requests until the other side is gone. Standard output belongs to
the kernel.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from harness.devices import device as messages
from harness.devices.device import Device, Fault, Finished, ScoringDevice
from harness.report import Value
from harness.workers import channel
from harness.workers.isolation import Role
from harness.workers.printed import Capture
from problem.cases import Matrix

Answer = tuple[Value, Sequence[Matrix]]


class Hello(Value):
    """The worker's first message: it is ready, and this is what it is held to."""

    kind: Literal["hello"] = "hello"
    isolation: tuple[str, ...]


def main(role: Role, connection: Connection, enforced: tuple[str, ...]) -> None:
    """Serve one role until the judge hangs up. enforced: what this process is held to."""
    capture = Capture()
    serve = {Role.COMPILER: _compiler, Role.REFEREE: _referee}.get(role, _device)
    answer, requests = serve(role)
    channel.send(connection, Hello(isolation=enforced))
    while True:
        try:
            request, matrices = channel.receive(connection, requests)
        except (EOFError, OSError):
            return
        try:
            body, results = answer(request, matrices)
        except Exception as error:
            body, results = _our_fault(error), ()
        if isinstance(body, Finished | Fault):
            body = body.model_copy(update={"printed": (body.printed + capture.take())})
        channel.send(connection, body, results)


def _our_fault(error: Exception) -> Fault:
    return Fault(
        cause="judge",
        message=f"the judge failed: {type(error).__name__}: {error}",
        details=traceback.format_exc(),
    )


Served = tuple[Callable[[Value, list[Matrix]], Answer], TypeAdapter[Value]]


def _compiler(role: Role) -> Served:
    from harness.compiling import compiler, headers
    from harness.compiling.kernel import Compile

    headers.include_directories()
    compiler.version()  # loads NVRTC while its files can still be read

    def answer(request: Value, _: list[Matrix]) -> Answer:
        assert isinstance(request, Compile)
        return compiler.compile_source(request), ()

    return answer, TypeAdapter(Compile)


def _referee(role: Role) -> Served:
    from harness.devices.cuda.referee import CudaReferee

    referee = CudaReferee()

    def answer(request: Value, _: list[Matrix]) -> Answer:
        match request:
            case messages.LayOut():
                return referee.lay_out(request), ()
            case messages.DrawInputs():
                return referee.draw_inputs(request), ()
            case messages.CheckLaunch():
                return referee.check_launch(request), ()
            case messages.FetchLaunch():
                fetched = referee.fetch_launch(request)
                return (
                    (fetched, ()) if isinstance(fetched, Fault) else (messages.Fetched(), fetched)
                )
        raise TypeError(f"no such request: {request!r}")

    requests: TypeAdapter[Value] = TypeAdapter(
        Annotated[messages.RefereeRequest, Field(discriminator="call")]
    )
    return answer, requests


def _device(role: Role) -> Served:
    device: Device | ScoringDevice
    if role is Role.CUDA:
        from harness.devices.cuda.device import CudaDevice

        device = CudaDevice()
    else:
        from harness.devices.cpu.device import CpuDevice

        device = CpuDevice()

    def answer(request: Value, matrices: list[Matrix]) -> Answer:
        return _ask(device, request, matrices)

    requests: TypeAdapter[Value] = TypeAdapter(
        Annotated[messages.Request, Field(discriminator="call")]
    )
    return answer, requests


def _ask(device: Device | ScoringDevice, request: Value, matrices: list[Matrix]) -> Answer:
    """One request to the device: the message's name is the method's."""
    match request:
        case messages.Describe():
            return device.info(), ()
        case messages.Load():
            return device.load(request.kernel), ()
        case messages.Run():
            result = device.run(request, *matrices)
            return (result, ()) if isinstance(result, Fault) else (result[0], (result[1],))
        case messages.Sanitize():
            return device.sanitize(request), ()
        case messages.Count():
            return device.count(request) or messages.Uncounted(), ()
    scoring: ScoringDevice = device  # type: ignore[assignment]  # only such a device is asked
    match request:
        case messages.MeasureFirstLaunch():
            return scoring.first_launch(request), ()
        case messages.MeasureHostMemory():
            return scoring.host_memory(request), ()
        case messages.RunBaseline():
            result = scoring.run_baseline(request, *matrices)
            return (result, ()) if isinstance(result, Fault) else (result[0], (result[1],))
        case messages.Attach():
            return scoring.attach(request), ()
        case messages.Detach():
            return scoring.detach(request), ()
        case messages.TimeLaunch():
            return scoring.time_launch(request), ()
    raise TypeError(f"no such request: {request!r}")
