"""What NVML says of the node's GPUs: who uses them, how busy they are, and their errors.

Needs the extra `nvidia`; without it, or without a driver, ranks simply have no GPU facts. NVML's
calls can block for as long as a driver is stuck, which is when they matter most: they are made by
one daemon thread, and everybody else reads what it found last. Not run on a GPU by our own tests:
they give it a module with NVML's functions in its place.
https://docs.nvidia.com/deploy/nvml-api/
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hangwatch_agent import logs, wire

EVERY_S = 5.0
STALE_S = 60.0  # the thread hangs in the driver: what it said before is no fact any more
XID_KEEP_S = 900.0
RETRY_S = 60.0
MAX_XIDS = 16
MAX_TEXT = 96
_EVENT_XID = 8  # nvmlEventTypeXidCriticalError
_TEMPERATURE_GPU = 0
_UNCORRECTED, _VOLATILE = 1, 0
_THROTTLE = {  # nvmlClocksEventReasons: only those that say that something is wrong
    0x0000000000000004: "sw_power_cap",
    0x0000000000000008: "hw_slowdown",
    0x0000000000000020: "sw_thermal_slowdown",
    0x0000000000000040: "hw_thermal_slowdown",
    0x0000000000000080: "hw_power_brake_slowdown",
}


@dataclass(slots=True)
class _Device:
    """One GPU; `handle` is NVML's own, of which nothing is known."""

    index: int
    handle: Any
    uuid: str
    name: str
    xids: list[tuple[float, int]] = field(default_factory=list)


class Gpus:
    """The newest facts per process; `of` never waits and never raises."""

    def __init__(
        self,
        load: Callable[[], Any] = lambda: importlib.import_module("pynvml"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._clock = clock
        self._by_pid: dict[int, wire.GpuFacts] = {}
        self._read_s = float("-inf")
        self._nvml: Any = None  # a module without types, or its stand-in
        self._devices: list[_Device] = []
        self._events: Any = None

    def start(self) -> None:
        """Begin reading, in a thread that dies with the agent."""
        threading.Thread(target=self._run, name="gpus", daemon=True).start()

    def of(self, pid: int) -> wire.GpuFacts | None:
        """The first GPU that this process uses, None while none is known."""
        if self._clock() - self._read_s > STALE_S:
            return None
        return self._by_pid.get(pid)

    def open(self) -> bool:
        """Load the library and find the devices; False where there are none."""
        try:
            self._nvml = self._load()
            self._nvml.nvmlInit()
            count = int(self._nvml.nvmlDeviceGetCount())
            self._devices = [self._device(index) for index in range(count)]
        except Exception as error:
            # The library's own boundary: it raises its own types, and any that ctypes does.
            logs.debug("gpus_not_read", why=f"{type(error).__name__}: {error}")
            return False
        self._watch_events()
        return bool(self._devices)

    def read(self) -> None:
        """One look at all devices; what a device does not say is left out."""
        now_s = self._clock()
        self._take_events(now_s)
        found: dict[int, wire.GpuFacts] = {}
        for device in self._devices:
            facts = self._facts(device, now_s)
            for process in self._ask("nvmlDeviceGetComputeRunningProcesses", device.handle) or ():
                found.setdefault(int(process.pid), facts)
        self._by_pid, self._read_s = found, now_s

    def _run(self) -> None:
        """Look every few seconds; a library or driver that comes later is found later."""
        while True:
            try:
                while not self.open():
                    time.sleep(RETRY_S)
                while True:
                    self.read()
                    time.sleep(EVERY_S)
            except Exception:
                # Thread boundary: whatever the driver does, the agent goes on without its facts.
                logs.exception("gpus_lost", retry_s=RETRY_S)
                time.sleep(RETRY_S)

    def _device(self, index: int) -> _Device:
        handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
        uuid = _text(self._ask("nvmlDeviceGetUUID", handle))
        return _Device(index, handle, uuid, _text(self._ask("nvmlDeviceGetName", handle)))

    def _facts(self, device: _Device, now_s: float) -> wire.GpuFacts:
        handle = device.handle
        rates = self._ask("nvmlDeviceGetUtilizationRates", handle)
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        device.xids = [item for item in device.xids if now_s - item[0] <= XID_KEEP_S][-MAX_XIDS:]
        return wire.GpuFacts(
            index=device.index,
            uuid=device.uuid,
            name=device.name,
            utilisation=None if rates is None else float(rates.gpu),
            xid=tuple(code for _, code in device.xids),
            power_w=_scaled(self._ask("nvmlDeviceGetPowerUsage", handle), 1000),
            power_limit_w=_scaled(self._ask("nvmlDeviceGetEnforcedPowerLimit", handle), 1000),
            memory_used_bytes=None if memory is None else int(memory.used),
            memory_total_bytes=None if memory is None else int(memory.total),
            temperature_c=_scaled(
                self._ask("nvmlDeviceGetTemperature", handle, _TEMPERATURE_GPU), 1
            ),
            ecc_errors=self._ask("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _VOLATILE),
            throttle=self._throttle(handle),
        )

    def _throttle(self, handle: Any) -> tuple[str, ...]:
        """Renamed in newer drivers; the old name is still there in most."""
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if bits is None:
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return tuple(name for bit, name in _THROTTLE.items() if int(bits or 0) & bit)

    def _watch_events(self) -> None:
        self._events = self._ask("nvmlEventSetCreate")
        if self._events is not None:
            for device in self._devices:
                self._ask("nvmlDeviceRegisterEvents", device.handle, _EVENT_XID, self._events)

    def _take_events(self, now_s: float) -> None:
        """All Xid errors since the last look, without waiting for one."""
        for _ in range(MAX_XIDS * max(1, len(self._devices))):
            event = None
            if self._events is not None:
                event = self._ask("nvmlEventSetWait_v2", self._events, 0)
            if event is None:
                return
            uuid = _text(self._ask("nvmlDeviceGetUUID", event.device))
            for device in self._devices:
                if device.uuid == uuid and int(event.eventType) == _EVENT_XID:
                    device.xids.append((now_s, int(event.eventData)))

    def _ask(self, name: str, *arguments: Any) -> Any:
        """One call; None where library, driver or device do not have it or refuse it."""
        function = getattr(self._nvml, name, None)
        if function is None:
            return None
        # NVML's errors share no type with anything of ours, and a lack is no news.
        with contextlib.suppress(Exception):
            return function(*arguments)
        return None


def _text(value: object) -> str:
    """Older versions of the library give bytes."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text[:MAX_TEXT] if isinstance(text, str) else ""


def _scaled(value: Any, divisor: int) -> float | None:
    return None if value is None else float(value) / divisor
