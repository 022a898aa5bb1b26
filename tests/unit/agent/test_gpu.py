"""GPU facts, read from a module that has NVML's functions. No GPU is behind any of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hangwatch_agent import gpu
from hangwatch_agent.gpu import Gpus


class FakeNvml:
    """NVML's functions over two GPUs; each can be made to refuse, as drivers do."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.events: list[tuple[int, int]] = []
        self.utilisation = 97
        self.processes = {0: [801], 1: [802, 803]}

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name in object.__getattribute__(self, "refused"):
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:
        return f"GPU-{handle}".encode()

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "NVIDIA H100"

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        return SimpleNamespace(gpu=self.utilisation, memory=3)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(used=10, total=80)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return 350_000

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return 700_000

    def nvmlDeviceGetTemperature(self, handle: int, kind: int) -> int:
        return 61

    def nvmlDeviceGetTotalEccErrors(self, handle: int, kind: int, counter: int) -> int:
        raise RuntimeError("Not Supported")

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:
        return 0x40 | 0x1

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=1) for pid in self.processes[handle]]

    def nvmlEventSetCreate(self) -> str:
        return "set"

    def nvmlDeviceRegisterEvents(self, handle: int, kinds: int, events: str) -> None: ...

    def nvmlEventSetWait_v2(self, events: str, timeout_ms: int) -> Any:
        if not self.events:
            raise TimeoutError
        device, code = self.events.pop(0)
        return SimpleNamespace(device=device, eventType=8, eventData=code)


class Hand:
    """A clock that is moved by hand."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def opened(nvml: FakeNvml, clock: Hand | None = None) -> Gpus:
    gpus = Gpus(lambda: nvml, clock or Hand())
    assert gpus.open()
    gpus.read()
    return gpus


def test_process_has_the_facts_of_its_gpu() -> None:
    facts = opened(FakeNvml()).of(802)

    assert facts is not None
    assert (facts.index, facts.uuid, facts.name) == (1, "GPU-1", "NVIDIA H100")
    assert (facts.utilisation, facts.power_w, facts.power_limit_w) == (97.0, 350.0, 700.0)
    assert (facts.memory_used_bytes, facts.memory_total_bytes) == (10, 80)
    assert facts.throttle == ("hw_thermal_slowdown",)


def test_what_a_device_does_not_say_is_left_out() -> None:
    nvml = FakeNvml()
    nvml.refused = {"nvmlDeviceGetPowerUsage", "nvmlDeviceGetUtilizationRates"}

    facts = opened(nvml).of(801)

    assert facts is not None
    assert (facts.power_w, facts.utilisation, facts.ecc_errors) == (None, None, None)


def test_process_without_a_gpu_has_none() -> None:
    assert opened(FakeNvml()).of(4711) is None


def test_xid_belongs_to_the_gpu_that_raised_it_until_it_is_old() -> None:
    nvml, clock = FakeNvml(), Hand()
    gpus = opened(nvml, clock)
    nvml.events = [(1, 79), (1, 48)]

    gpus.read()

    hit, other = gpus.of(802), gpus.of(801)
    assert hit is not None
    assert other is not None
    assert (hit.xid, other.xid) == ((79, 48), ())
    clock.now_s += gpu.XID_KEEP_S + 1
    gpus.read()
    assert gpus.of(802) == other.__class__(**{**_fields(hit), "xid": ()})


def _fields(facts: Any) -> dict[str, Any]:
    return {name: getattr(facts, name) for name in facts.__struct_fields__}


def test_facts_of_a_thread_that_hangs_in_the_driver_expire() -> None:
    clock = Hand()
    gpus = opened(FakeNvml(), clock)

    clock.now_s += gpu.STALE_S + 1

    assert gpus.of(801) is None


def missing() -> Any:
    raise ModuleNotFoundError("pynvml")


def no_driver() -> Any:
    nvml = FakeNvml()
    nvml.refused = {"nvmlInit"}
    return nvml


@pytest.mark.parametrize("load", [missing, no_driver])
def test_absent_library_or_driver_is_a_silent_lack(load: Any) -> None:
    gpus = Gpus(load)

    assert not gpus.open()
    assert gpus.of(801) is None
