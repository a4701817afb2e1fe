#!/bin/sh
# Scores on ARM64, by emulation: a Debian of that processor is unpacked into a folder (nothing of it is
# configured, so it needs no ARM64 machine), wheels are put beside it, and its Python computes the
# golden scores. Needs root, debootstrap and qemu-user-static.
#   benchmarks/arm64.sh PYTHON FOLDER
set -eu
python=$1 root=$2 here=$(cd "$(dirname "$0")/.." && pwd)

if [ ! -e "$root/usr/bin/python3.11" ]; then
    debootstrap --arch=arm64 --foreign --variant=minbase --include=python3,libgomp1,libstdc++6 \
        bookworm "$root" http://deb.debian.org/debian
    for package in "$root"/var/cache/apt/archives/*.deb; do  # those that only a configuration unpacks
        dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
    done
    cp "$(command -v qemu-aarch64-static)" "$root/usr/bin/"
fi
"$python" -m pip install --quiet --upgrade --target "$root/site" --constraint "$here/constraints.txt" \
    --only-binary :all: --implementation cp --python-version 3.11 --abi cp311 --abi abi3 --abi none \
    --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 \
    numpy narwhals safetensors polars typer rich threadpoolctl
mkdir -p "$root/src" "$root/data"
cp -r "$here/src" "$here/benchmarks" "$here/tests" "$root/src/"
real=${VACE_DATA:-$here/../shared/data}/TSB-AD-M  # where it is missing, the synthetic case alone
if [ -d "$real" ]; then cp -r "$real" "$root/data/"; fi
PYTHONPATH=/src/src:/site OMP_NUM_THREADS=1 VACE_DATA=/data chroot "$root" \
    /usr/bin/qemu-aarch64-static /usr/bin/python3.11 /src/benchmarks/processor.py --compute \
    > "$root/found.json"
"$python" "$here/benchmarks/processor.py" "$root/found.json"
