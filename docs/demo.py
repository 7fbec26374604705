#!/usr/bin/env python3
"""Draws demo.png, the README's picture, from the pictures that `./dev demo FOLDER` leaves: demo.py FOLDER. Needs Pillow."""

import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

folder = Path(sys.argv[1])
particles = Image.open(folder / "particles.png")
slices = Image.open(folder / "map_slices.png")
side = 176
# Where the panels of both pictures lie.
noisy = [particles.crop((8 + 200 * i, 8, 200 + 200 * i, 200)) for i in (0, 2, 3)]
found = [slices.crop((8 + 328 * i, 774, 328 + 328 * i, 1094)) for i in range(3)]

font = ImageFont.truetype("DejaVuSans.ttf", 14)
gap, head, arrow = 6, 24, 56
row = 3 * side + 2 * gap
picture = Image.new("RGB", (2 * row + arrow, head + side), "white")
draw = ImageDraw.Draw(picture)
for left, panels, words in ((0, noisy, "three of 5000 particles, as simulated"),
                            (row + arrow, found, "the map reconstructed from them: sums along z, y, x")):
    draw.text((left, 2), words, "black", font)
    for i, panel in enumerate(panels):
        picture.paste(panel.resize((side, side), Image.NEAREST), (left + i * (side + gap), head))
middle = head + side // 2
draw.line((row + 10, middle, row + arrow - 16, middle), "black", 3)
draw.polygon([(row + arrow - 18, middle - 8), (row + arrow - 18, middle + 8), (row + arrow - 6, middle)], "black")
picture.quantize(64).save(Path(__file__).with_name("demo.png"), optimize=True)
