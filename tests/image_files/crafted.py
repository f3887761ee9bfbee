"""Files that say that they hold much more than they do."""

import io
import struct
import zipfile
import zlib

from PIL import Image


def png(width, height, frames=1):
    """A PNG whose pixels are missing; with frames, an animated one."""

    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    found = b"\x89PNG\r\n\x1a\n"
    found += chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    if frames > 1:
        found += chunk(b"acTL", struct.pack(">II", frames, 0))
    return found + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def gif(width, height, *frames):
    """A GIF with frames (left, top, width, height)."""
    found = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    for frame in frames:
        found += b"," + struct.pack("<HHHHB", *frame, 0) + b"\2\2\x4c\1\0"
    return found + b";"


def growing_gif(width, height):
    """A GIF whose last frames are larger than its screen."""
    file = io.BytesIO()
    pictures = [Image.new("P", (9, 9), k) for k in range(3)]
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:])
    frames = gif(9, 9, *[(0, 0, width, height)] * 3)
    return file.getvalue().removesuffix(b";") + frames[19:]


def tiff(width, height, pages, compression=1):
    """Pages that all show the same strip."""
    found = bytearray(struct.pack("<2sHI", b"II", 42, 16) + bytes(8))
    for k in range(pages):
        tags = {256: width, 257: height, 258: 1, 259: compression, 262: 1, 273: 8, 277: 1}
        tags |= {278: height, 279: 8}
        found += struct.pack("<H", len(tags))
        for tag, value in tags.items():
            found += struct.pack("<HHII", tag, 4, 1, value)
        found += struct.pack("<I", len(found) + 4 if k + 1 < pages else 0)
    return bytes(found)


def webp(width, height, frames):
    """Small frames on a canvas that is said to be large."""
    file = io.BytesIO()
    pictures = [Image.new("RGB", (9, 9), (k, 0, 0)) for k in range(frames)]
    pictures[0].save(file, "WEBP", save_all=True, append_images=pictures[1:], lossless=True)
    found = bytearray(file.getvalue())
    at = found.index(b"VP8X") + 12
    found[at : at + 6] = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return bytes(found)


def pbm(width, height):
    return b"P4\n%d %d\n" % (width, height)


def bmp(width, height):
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 1, 0, 0, 0, 0, 2, 2)
    return struct.pack("<2sIHHI", b"BM", 70, 0, 0, 62) + head + bytes(8)


def npy(shape, dtype="|u1", data=b""):
    about = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    about += b" " * (-(len(about) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(about)) + about + data


def npz(shape, dtype="|u1", name="X", n_bytes=0, extra=b""):
    """An archive of one array that has so many zeros."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(f"{name}.npy")
        info.compress_type = zipfile.ZIP_DEFLATED
        info.extra = extra
        with archive.open(info, "w") as member:
            member.write(npy(shape, dtype))
            for _ in range(n_bytes // 2**20):
                member.write(bytes(2**20))
            member.write(bytes(n_bytes % 2**20))
    return file.getvalue()


def lying(content, size):
    """An archive that says that its only member becomes so large."""
    content = bytearray(content)
    at = content.rindex(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<I", size)
    return bytes(content)


SIDE = 9000  # 81 megapixels
BOMBS = {
    "one.png": png(60_000, 50_000),
    "two.png": png(9460, 9460),
    "frames.png": png(SIDE, SIDE, 24),
    "endless.png": png(9, 9, 2**31 - 1),
    "frames.gif": gif(SIDE, SIDE, *[(0, 0, SIDE, SIDE)] * 24),
    "grows.gif": growing_gif(65_000, 65_000),
    "large.gif": gif(65_000, 65_000, (0, 0, 9, 9)),
    "one.tif": tiff(60_000, 50_000, 1),
    "pages.tif": tiff(SIDE, SIDE, 400),
    "last.tif": tiff(9, 9, 1)[:8] + tiff(60_000, 50_000, 1)[8:],
    "frames.webp": webp(SIDE, SIDE, 4),
    "one.pbm": pbm(60_000, 50_000),
    "one.bmp": bmp(60_000, 50_000),
    "one.npz": npz((60_000, 50_000)),
    "said.npz": lying(npz((60_000, 50_000)), 3_000_000_128),
    "full.npz": npz((4, 6000, 6000), n_bytes=144_000_000),
    "many.npz": npz((2**28, 1, 1), n_bytes=2**28),
    "wide.npz": npz((1, 2**28, 1, 1), n_bytes=2**28),
    "one.npy": npy((60_000, 50_000)),
    "many.npy": npy((2**62, 1, 1)),
    "huge.npy": npy((2**40, 2**40, 2**40)),
}
