"""One service of a compose file as a process in a box: what a container engine does, by util-linux.

Its root is this machine's, or the image's own, read-only, with what the file adds laid over it. Its
processes, mounts, host name and network are its own; user, capabilities and privileges the file's.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
from tests.deploy import images
from tests.deploy.compose import Service
from tests.support.waiting import until

# Of this machine, nothing may be seen of these.
HIDDEN = {"run": 0o755, "tmp": 0o1777}


class Box:
    """The layer and the commands of one service; it can be started again and again."""

    def __init__(
        self,
        service: Service,
        folder: Path,
        namespace: Path,
        hosts: str,
        secrets: Mapping[str, Path],
    ) -> None:
        assert service.is_read_only, f"{service.name} may write everywhere"
        assert service.has_no_new_privileges, f"{service.name} may gain privileges"
        self.service = service
        self.image = (
            images.of_ours(service.target) if service.target else images.of_others(service.image)
        )
        self._folder, self._namespace, self.secrets = folder, namespace, secrets
        self._root = folder / f"{service.name}.root"
        self._layer = folder / f"{service.name}.layer"
        self._script = folder / f"{service.name}.sh"
        self._root.mkdir()
        self._lay(hosts)
        self._script.write_text("\n".join(self._lines()) + "\n")

    @property
    def log(self) -> Path:
        return self._folder / f"{self.service.name}.log"

    def start(self, pid_namespace: Path | None = None) -> Started:
        """Start its command; `pid_namespace` is that of the service whose processes it shares."""
        into = ["nsenter", f"--net={self._namespace}"]
        into += [f"--pid={pid_namespace}"] if pid_namespace else []
        alone = ["unshare", "--mount", "--uts"]
        alone += [] if pid_namespace else ["--pid", "--fork", "--kill-child"]
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                [*into, *alone, "sh", str(self._script)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Started(process)

    def inside(self, pid: int, *command: str) -> list[str]:
        """A command as `docker exec` runs it beside the process `pid`."""
        target = ["nsenter", f"--target={pid}", "--mount", "--uts", "--net", "--pid", "--"]
        return [*target, *self._as_user(), *command]

    def _as_user(self) -> list[str]:
        user = self.service.user or self.image.user
        names = [name.lower() for name in self.service.capabilities]
        environment = {
            "HOSTNAME": self.service.name,
            "HOME": "/",
            **self.image.environment,
            **self.service.environment,
        }
        return [
            "env",
            "--ignore-environment",
            *(f"{name}={value}" for name, value in environment.items()),
            "setpriv",
            *_identity(user),
            "--inh-caps=-all",
            f"--bounding-set={','.join(['-all', *(f'+{name}' for name in names)])}",
            "--no-new-privs",
            "--",
        ]

    def _command(self) -> tuple[str, ...]:
        """Its entry point and command, each the file's where it names one, else the image's."""
        service, image = self.service, self.image
        entrypoint = image.entrypoint if service.entrypoint is None else service.entrypoint
        # As an engine does: an entry point of the file's own leaves the image's command out.
        otherwise = image.command if service.entrypoint is None else ()
        return (*entrypoint, *(otherwise if service.command is None else service.command))

    def _lay(self, hosts: str) -> None:
        """The upper layer: files of the image, and the places where something is mounted."""
        for name, mode in HIDDEN.items():
            folder = self._layer / name
            folder.mkdir(parents=True)
            folder.chmod(mode)
            os.setxattr(folder, "trusted.overlay.opaque", b"y")
        for path, text in {**self.image.scripts, "/etc/hosts": hosts}.items():
            self._place(path, is_file=True).write_text(text)
            self._place(path, is_file=True).chmod(0o755 if path in self.image.scripts else 0o644)
        for source, target, _ in self._binds():
            self._place(target, is_file=source.is_file())
        for path in self.service.tmpfs:
            self._place(path, is_file=False)

    def _place(self, inside: str, *, is_file: bool) -> Path:
        # Links such as /var/run stay what they are on this machine.
        path = self._layer / os.path.realpath(inside).lstrip("/")
        if is_file:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        else:
            path.mkdir(parents=True, exist_ok=True)
        return path

    def _binds(self) -> Iterator[tuple[Path, str, bool]]:
        """(here, inside, read-only) of image, volumes and secrets."""
        for target, source in self.image.mounts.items():
            yield source, target, True
        for volume in self.service.volumes:
            source = images.ROOT / volume.source if volume.is_file else self._volume(volume.source)
            yield source, volume.target, volume.is_read_only
        for name in self.service.secrets:
            yield self.secrets[name], f"/run/secrets/{name}", True

    def _volume(self, name: str) -> Path:
        """A named volume; a new one is as the image has that place."""
        folder = self._folder / "volumes" / name
        if not folder.exists():
            folder.mkdir(parents=True)
            target = next(item.target for item in self.service.volumes if item.source == name)
            user, mode = self.image.owned.get(target, ("root", 0o755))
            owner = pwd.getpwnam(user)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            folder.chmod(mode)
        return folder

    def _lines(self) -> Iterator[str]:
        """The script that makes the box round itself and becomes the command."""
        root = shlex.quote(str(self._root))
        yield "set -e"
        # Layers may not lie in one another, and below / lies everything but another file system.
        yield f"mount -t tmpfs tmpfs {root}"
        yield f"cp --archive {shlex.quote(str(self._layer))} {root}/layer"
        yield f"mount -t overlay overlay -o lowerdir={self._root}/layer:{self.image.root} {root}"
        yield f"mount -t proc proc {root}/proc"
        yield f"mount --rbind /sys {root}/sys"
        yield f"mount --rbind /dev {root}/dev"
        yield f"mount -t tmpfs -o mode=1777,nosuid,nodev,noexec tmpfs {root}/dev/shm"
        for path in self.service.tmpfs:
            place = shlex.quote(f"{self._root}{os.path.realpath(path)}")
            yield f"mount -t tmpfs -o mode=1777,nosuid,nodev,noexec tmpfs {place}"
        for source, target, is_read_only in self._binds():
            place = shlex.quote(f"{self._root}{os.path.realpath(target)}")
            yield f"mount --bind {shlex.quote(str(source))} {place}"
            if is_read_only:
                yield f"mount -o remount,bind,ro {place}"
        yield f"hostname {self.service.name}"
        yield f"cd {root}"
        yield "pivot_root . ."
        yield "umount -l ."
        yield f"cd {shlex.quote(self.image.folder)}"
        yield f"exec {shlex.join([*self._as_user(), *self._command()])}"


class Started:
    """A running box; `pid` is its first process as this machine numbers it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Raises ProcessLookupError when it has ended."""

        # util-linux waits for the one process that it has forked into the namespaces.
        def child() -> int | None:
            if self._process.poll() is not None:
                raise ProcessLookupError
            found = psutil.Process(self._process.pid).children()
            return found[0].pid if found else None

        return until(child, 10, "the box has its first process")

    @property
    def pid_namespace(self) -> Path:
        return Path(f"/proc/{self.pid}/ns/pid")

    def exit_code(self) -> int | None:
        return self._process.poll()

    def kill(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


def _identity(user: str) -> Sequence[str]:
    uid, _, gid = user.partition(":")
    if uid.isdigit():
        return (f"--reuid={uid}", f"--regid={gid or uid}", "--clear-groups")
    known = pwd.getpwnam(uid)
    return (f"--reuid={known.pw_uid}", f"--regid={known.pw_gid}", "--clear-groups")
