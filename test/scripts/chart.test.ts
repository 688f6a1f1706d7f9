import { expect, test } from "bun:test";
import { barChart, laneChart, lineChart } from "../../scripts/lib/chart.ts";

const titles = { title: "Title", subtitle: "where < from", yTitle: "GB/s" };

const textsOf = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);

test("bars are as high as their values, and none stands where there is none", () => {
  const svg = barChart({
    ...titles,
    groups: ["a", "b"],
    series: [
      { name: "x", values: [1, 2] },
      { name: "z", values: [4, undefined] },
    ],
  });
  const bars = [
    ...svg.matchAll(
      /d="M\S+ \S+l\S+ 0l0 -(\S+)l[^"]*" fill="[^"]*" ecmeta_series_index="(\d)" ecmeta_data_index="(\d)"/g,
    ),
  ].map(([, height, series, group]) => [series, group, Number(height)]);
  const unit = Number(bars[0]?.[2]);
  expect(unit).toBeGreaterThan(10);
  expect(bars).toEqual([
    ["0", "0", unit],
    ["0", "1", 2 * unit],
    ["1", "0", 4 * unit],
  ]);
  for (const text of ["Title", "where &lt; from", "GB/s", "a", "b", "x", "z"]) expect(textsOf(svg)).toContain(text);
});

test("equal ratios are equal steps on a logarithmic axis; points stand on the line they belong to", () => {
  const points = [
    [2, 0.1],
    [3, 0.01],
    [4, 0.001],
  ] as const;
  const svg = lineChart({
    ...titles,
    xTitle: "bits",
    logarithmic: true,
    series: [
      { name: "measured", kind: "points", points },
      { name: "theory", kind: "line", points },
    ],
  });
  const line = /d="M(\S+) (\S+)L(\S+) (\S+)L(\S+) (\S+)"[^>]*stroke-width="1.5"/.exec(svg);
  const [x0 = 0, y0 = 0, x1 = 0, y1 = 0, x2 = 0, y2 = 0] = (line ?? []).slice(1).map(Number);
  expect(x1 - x0).toBeGreaterThan(100);
  expect(x2 - x1).toBeCloseTo(x1 - x0, 0);
  expect(y1 - y0).toBeGreaterThan(50);
  expect(y2 - y1).toBeCloseTo(y1 - y0, 0);
  const marks = [...svg.matchAll(/matrix\([^)]*,([\d.]+),([\d.]+)\)"[^>]*ecmeta_series_index="0"/g)];
  const drawn = marks.flatMap(([, x, y]) => [Number(x), Number(y)]);
  expect(drawn).toHaveLength(6);
  for (const [i, place] of [x0, y0, x1, y1, x2, y2].entries()) {
    expect(Math.abs((drawn[i] ?? Number.NaN) - place)).toBeLessThan(0.1);
  }
  for (const text of ["Title", "bits", "GB/s", "measured", "theory"]) expect(textsOf(svg)).toContain(text);
});

test("lanes have a rectangle for each span, from its start to its end", () => {
  const svg = laneChart({
    title: "A pass",
    subtitle: "on a device",
    xTitle: "microseconds",
    lanes: [
      { name: "first", spans: [[0, 10]] },
      {
        name: "second",
        spans: [
          [0, 40],
          [50, 100],
        ],
      },
    ],
  });
  for (const text of ["A pass", "on a device", "microseconds", "first", "second"]) expect(svg).toContain(text);
  const widths = [...svg.matchAll(/d="M\S+ \S+l(\S+) 0l0 24l[^"]*" fill="[^"]*" stroke/g)].map(([, width]) =>
    Number(width),
  );
  expect(widths.length).toBe(3);
  const [ten = 0, forty = 0, fifty = 0] = widths;
  expect(forty / ten).toBeCloseTo(4, 0);
  expect(fifty / ten).toBeCloseTo(5, 0);
});
