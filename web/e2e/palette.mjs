// SPDX-License-Identifier: Apache-2.0
// A picture of a page with at most 256 colours: a third of the size, and one sees no difference.
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** A PNG of 8 bits a channel without interlacing, as browsers make them, with a palette. */
export function reduced(png) {
  const { width, height, pixels } = decode(png);
  return encode(width, height, indexed(pixels));
}

function decode(png) {
  let [width, height, channels] = [0, 0, 0];
  const parts = [];
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + length);
    if (type === "IHDR") {
      [width, height] = [data.readUInt32BE(0), data.readUInt32BE(4)];
      channels = { 2: 3, 6: 4 }[data[9]];
      if (data[8] !== 8 || channels === undefined || data[12] !== 0)
        throw new Error("not a PNG of the kind that browsers make");
    }
    if (type === "IDAT") parts.push(data);
    at += length + 12;
  }
  const lines = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  const pixels = new Uint32Array(width * height);
  let before = new Uint8Array(stride);
  for (let y = 0; y < height; y++) {
    const line = unfiltered(
      lines[y * (stride + 1)],
      lines.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)),
      before,
      channels,
    );
    for (let x = 0; x < width; x++) {
      pixels[y * width + x] =
        (line[x * channels] << 16) | (line[x * channels + 1] << 8) | line[x * channels + 2];
    }
    before = line;
  }
  return { width, height, pixels };
}

function unfiltered(filter, line, above, channels) {
  const made = Uint8Array.from(line);
  for (let i = 0; i < made.length; i++) {
    const left = i >= channels ? made[i - channels] : 0;
    const corner = i >= channels ? above[i - channels] : 0;
    const guess = [0, left, above[i], (left + above[i]) >> 1, paeth(left, above[i], corner)][
      filter
    ];
    made[i] = (made[i] + guess) & 255;
  }
  return made;
}

function paeth(left, above, corner) {
  const sum = left + above - corner;
  const [a, b, c] = [Math.abs(sum - left), Math.abs(sum - above), Math.abs(sum - corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/** How many colours, the most frequent ones, are kept exactly: the large areas and the texts. */
const KEPT = 128;

/** The others by median cut: the box of colours that stretches most is cut until there are enough. */
function indexed(pixels) {
  const counts = new Map();
  for (const color of pixels) counts.set(color, (counts.get(color) ?? 0) + 1);
  const byCount = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
  const kept = byCount.slice(0, KEPT);
  const boxes = [boxOf(byCount.slice(KEPT))];
  while (boxes.length < 256 - KEPT) {
    boxes.sort((a, b) => b.span - a.span);
    const { colors, widest, span } = boxes[0];
    if (!(span > 0)) break;
    colors.sort((a, b) => channel(a, widest) - channel(b, widest));
    const middle = channel(colors[0], widest) + span / 2;
    const cut = Math.max(
      1,
      colors.findIndex((color) => channel(color, widest) > middle),
    );
    boxes.splice(0, 1, boxOf(colors.slice(0, cut)), boxOf(colors.slice(cut)));
  }
  const palette = [
    ...kept,
    ...boxes.filter(({ colors }) => colors.length > 0).map(({ colors }) => mean(colors, counts)),
  ];
  const index = new Map(kept.map((color, i) => [color, i]));
  for (const color of byCount.slice(KEPT)) index.set(color, nearest(color, palette));
  return { palette, indices: Uint8Array.from(pixels, (color) => index.get(color)) };
}

const channel = (color, i) => (color >> (16 - 8 * i)) & 255;

function boxOf(colors) {
  const spans = [0, 1, 2].map((i) => {
    let [least, most] = [255, 0];
    for (const color of colors)
      [least, most] = [Math.min(least, channel(color, i)), Math.max(most, channel(color, i))];
    return most - least;
  });
  const widest = spans.indexOf(Math.max(...spans));
  return { colors, widest, span: spans[widest] };
}

function mean(colors, counts) {
  let all = 0;
  const sums = [0, 0, 0];
  for (const color of colors) {
    all += counts.get(color);
    for (const i of [0, 1, 2]) sums[i] += channel(color, i) * counts.get(color);
  }
  const [r, g, b] = sums.map((sum) => Math.round(sum / all));
  return (r << 16) | (g << 8) | b;
}

function nearest(color, palette) {
  let [best, least] = [0, Infinity];
  for (const [i, other] of palette.entries()) {
    const far = [0, 1, 2].reduce((sum, c) => sum + (channel(color, c) - channel(other, c)) ** 2, 0);
    if (far < least) [best, least] = [i, far];
  }
  return best;
}

function encode(width, height, { palette, indices }) {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const lines = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y++)
    lines.set(indices.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", head),
    chunk(
      "PLTE",
      Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255])),
    ),
    chunk("IDAT", deflateSync(lines, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const made = Buffer.alloc(body.length + 8);
  made.writeUInt32BE(data.length, 0);
  body.copy(made, 4);
  made.writeUInt32BE(crc32(body), body.length + 4);
  return made;
}
