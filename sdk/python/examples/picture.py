#!/usr/bin/env python3
"""Builds a picture out of blocks, standing upright: picture.py NODE KEY FILE.ppm X Y Z

The file is a binary PPM of at most 128×128 pixels, as `convert in.png -resize 64x64 out.ppm` makes one. X Y Z is the
lower left corner; the picture extends along X. Needs the scopes read and edit.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import voxeld

PALETTE = {
    "white_wool": (234, 236, 236), "light_grey_wool": (142, 142, 134), "grey_wool": (62, 68, 71), "black_wool": (20, 21, 25),
    "red_wool": (160, 39, 34), "orange_wool": (240, 118, 19), "yellow_wool": (248, 197, 39), "lime_wool": (112, 185, 25),
    "green_wool": (84, 109, 27), "cyan_wool": (21, 137, 145), "light_blue_wool": (58, 175, 217), "blue_wool": (53, 57, 157),
    "purple_wool": (121, 42, 172), "pink_wool": (237, 141, 172), "brown_wool": (114, 71, 40),
}


def read_ppm(name):
    """Returns the rows of a picture, the highest first: of colours."""
    data = pathlib.Path(name).read_bytes()
    magic, width, height, most = data.split(None, 4)[:4]
    width, height = int(width), int(height)
    if magic != b"P6" or most != b"255" or not 0 < width <= 128 or not 0 < height <= 128:
        sys.exit("want a binary PPM of at most 128×128 pixels, with 255 shades")
    pixels = data[-3 * width * height :]
    return [[tuple(pixels[3 * (y * width + x) :][:3]) for x in range(width)] for y in range(height)]


def block_of(colour):
    return min(PALETTE, key=lambda name: sum((a - b) ** 2 for a, b in zip(PALETTE[name], colour)))


def main(node, key, name, x, y, z):
    x, y, z = int(x), int(y), int(z)
    rows = read_ppm(name)
    edits = [((x + dx, y + dy, z), block_of(colour)) for dy, row in enumerate(reversed(rows)) for dx, colour in enumerate(row)]
    refused = [why for why in voxeld.Client(node, key).edit(edits) if why]
    print(f"{len(edits) - len(refused)} blocks are placed.")
    if refused:
        sys.exit(f"{len(refused)} were refused: {', '.join(sorted(set(refused)))}")


if __name__ == "__main__":
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    main(*sys.argv[1:])
