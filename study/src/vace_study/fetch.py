"""Download the benchmark from its own address: resumed where it broke off, verified, unpacked."""

from __future__ import annotations

import hashlib
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from vace_ad.errors import InputError
from vace_study import published
from vace_study.series import SeriesName

ADDRESS = "https://www.thedatum.org/datasets/TSB-AD-M.zip"
SHA256 = "7de86ac27f30eeb48d833bb061055670e3f3de07defd995cf2bd5db10ccc9a0d"  # 540,383,983 bytes
_BLOCK = 1 << 20
Told = Callable[[int, int | None], None]  # bytes so far, bytes in all if known


def fetch(
    folder: str | Path,
    address: str = ADDRESS,
    sha256: str | None = SHA256,
    told: Told = lambda done, total: None,
) -> list[Path]:
    """Put the 200 series below `folder` and return their paths.

    A part that was downloaded before is continued. The archive must have the known checksum, and
    every series of the benchmark must come out of it whole; then the archive is removed.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "TSB-AD-M.zip.part"
    _download(address, archive, told)
    _verify(archive, sha256)
    paths = _unpack(archive, folder / "TSB-AD-M")
    archive.unlink()
    return paths


def _download(address: str, target: Path, told: Told) -> None:
    have = target.stat().st_size if target.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            resumed = response.status == 206
            length = response.headers.get("Content-Length")
            done = have if resumed else 0
            total = done + int(length) if length else None
            with target.open("ab" if resumed else "wb") as file:
                while block := response.read(_BLOCK):
                    file.write(block)
                    done += len(block)
                    told(done, total)
        if total is not None and done < total:
            raise InputError(
                f"the download broke off at {done} of {total} bytes; the same command goes on"
            )
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: nothing is left to send, all is here already
            raise InputError(f"{address} answered {error.code} {error.reason}") from error
    except OSError as error:
        raise InputError(
            f"{address} cannot be reached or broke off ({error}); the same command goes on later"
        ) from error


def _verify(archive: Path, sha256: str | None) -> None:
    """The known checksum; a wrong file is removed, so that the next try starts afresh."""
    digest = hashlib.sha256()
    with archive.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    if sha256 and digest.hexdigest() != sha256:
        archive.unlink()
        raise InputError(
            f"the archive has SHA-256 {digest.hexdigest()}, expected is {sha256}: damaged on the "
            "way, or a new edition of the benchmark; it was removed, try again"
        )


def _unpack(archive: Path, home: Path) -> list[Path]:
    """Every series into one folder, each whole or not at all; CRCs are checked on the way."""
    home.mkdir(exist_ok=True)
    paths = []
    try:
        with zipfile.ZipFile(archive) as bundle:
            for member in bundle.infolist():
                name = PurePosixPath(member.filename).name  # never a path from the archive
                if not name.endswith(".csv") or "_tr_" not in name or name.startswith("."):
                    continue
                part = home / f"{name}.part"
                with bundle.open(member) as source, part.open("wb") as target:
                    shutil.copyfileobj(source, target, _BLOCK)
                paths.append(part.replace(home / name))
    except zipfile.BadZipFile as error:
        raise InputError(
            f"the archive is damaged ({error}); remove {archive} and try again"
        ) from error
    missing = published.all_names() - {SeriesName.parse(path).stem for path in paths}
    if missing:
        raise InputError(
            f"{len(missing)} series of the benchmark are not in the archive, first {min(missing)}"
        )
    return sorted(paths)
