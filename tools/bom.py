"""A software bill of materials, CycloneDX 1.5: what vace-ad needs, and what is installed of it.

    .venv/bin/python tools/bom.py dist/vace-ad.cdx.json     # `make dist` does it

From the metadata of installed packages alone; no network. Extras that are installed count.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from lock import plain
from packaging.requirements import Requirement

EXTRAS = ("openvino", "train", "plot", "ray", "excel", "sql", "live")


def needs(dist: Distribution, extras: tuple[str, ...]) -> list[Requirement]:
    """The requirements that hold here, with these extras."""
    found = []
    for text in dist.requires or []:
        need = Requirement(text)
        if need.marker is None or any(
            need.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            found.append(need)
    return found


def materials(root: str, extras: tuple[str, ...]) -> dict[str, tuple[Distribution, set[str]]]:
    """Every installed package that the root leads to, and what each of them needs."""
    found: dict[str, tuple[Distribution, set[str]]] = {}
    waiting = [(root, extras)]
    while waiting:
        name, wanted = waiting.pop()
        try:
            dist = distribution(name)
        except PackageNotFoundError:
            continue  # an extra that is not installed here
        below = needs(dist, wanted)
        seen = found.setdefault(plain(name), (dist, set()))[1]
        fresh = [need for need in below if plain(need.name) not in seen]
        seen.update(plain(need.name) for need in below)
        waiting += [(need.name, tuple(need.extras)) for need in fresh]
    return found


def component(dist: Distribution, kind: str = "library") -> dict[str, Any]:
    """One package."""
    name, version = plain(dist.metadata["Name"]), dist.version
    purl = f"pkg:pypi/{name}@{version}"
    entry: dict[str, Any] = {"type": kind, "bom-ref": purl, "name": name, "version": version}
    entry["purl"] = purl
    words = dist.metadata.get("License-Expression")
    if words:
        entry["licenses"] = [{"expression": words}]
    return entry


def bill(root: str = "vace-ad", extras: tuple[str, ...] = EXTRAS) -> dict[str, Any]:
    """The whole document; the same for the same packages."""
    found = materials(root, extras)
    parts = {name: component(dist) for name, (dist, _) in sorted(found.items())}
    first = component(found[plain(root)][0], "application")
    edges = [
        {
            "ref": parts[name]["bom-ref"],
            "dependsOn": sorted(parts[need]["bom-ref"] for need in below if need in parts),
        }
        for name, (_, below) in sorted(found.items())
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": first},
        "components": [part for name, part in parts.items() if name != plain(root)],
        "dependencies": edges,
    }


def main() -> None:
    """Write the bill to the path given."""
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    document = bill()
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{path}: {len(document['components'])} packages")


if __name__ == "__main__":
    main()
