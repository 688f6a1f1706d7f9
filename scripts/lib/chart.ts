/** Charts as SVG text, drawn by ECharts without a browser. */
import { type EChartsOption, init, setPlatformAPI } from "echarts";

// Font metrics are unknown without a browser: Latin letters are estimated
// generously, so that labels do not overlap. All others are square, since
// ECharts takes the width of a Chinese one as the height of a line.
setPlatformAPI({
  measureText(text, font = "") {
    const size = Number(/(\d+)px/.exec(font)?.[1] ?? 12);
    return { width: size * text.length * (/^[ -~]*$/.test(text) ? 0.56 : 1.2) };
  },
});

/** What every chart has. */
interface Chart {
  readonly title: string;
  readonly subtitle: string;
  /** With its unit. */
  readonly yTitle: string;
}

/** Groups of bars side by side. */
export interface BarChart extends Chart {
  /** One group each. */
  readonly groups: readonly string[];
  /** A bar in each group, or none; values in the order of the groups. */
  readonly series: readonly { readonly name: string; readonly values: readonly (number | undefined)[] }[];
}

/** Points over numbers. */
export interface LineChart extends Chart {
  readonly xTitle: string;
  readonly series: readonly {
    readonly name: string;
    readonly points: readonly (readonly [x: number, y: number])[];
    /** A line without points for what theory says, points without a line for what was measured. */
    readonly kind: "line" | "points";
  }[];
  /** Whether equal steps upward are equal ratios. */
  readonly logarithmic: boolean;
  /** Whether doubling is an equal step to the right; lines then rise, and the legend is on the left. */
  readonly doubling?: boolean;
}

/** Stretches of time in lanes, one below the other. */
export interface LaneChart extends Omit<Chart, "yTitle"> {
  readonly xTitle: string;
  readonly lanes: readonly {
    readonly name: string;
    readonly spans: readonly (readonly [start: number, end: number])[];
  }[];
}

const size = { width: 960, height: 480 };
/** Distinct to the colour-blind (Okabe and Ito). */
const colours = ["#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#666666", "#009e73"];
/** Each smaller than the one before, so that none hides another. */
const symbols = ["emptyCircle", "emptyDiamond", "emptyTriangle", "emptyRect"];

/** What stands for a line in the legend. */
const dash = "path://M0,6H24V8H0Z";

/** A number of two or three digits, for the top of a bar. */
const label = (value: number): string => (value >= 10 ? value.toFixed(0) : value.toPrecision(2));

export function barChart({ groups, series, ...chart }: BarChart): string {
  return draw(chart, {
    legend: { bottom: 0 },
    xAxis: { type: "category", data: [...groups] },
    yAxis: { type: "value" },
    series: series.map(({ name, values }) => ({
      type: "bar",
      name,
      data: values.map((value) => value ?? null),
      label: { show: true, position: "top", fontSize: 9, formatter: ({ value }) => label(Number(value)) },
    })),
  });
}

export function lineChart({ xTitle, series, logarithmic, doubling = false, ...chart }: LineChart): string {
  return draw(chart, {
    legend: {
      orient: "vertical",
      left: (doubling ? 0.1 : 0.6) * size.width,
      top: 100,
      data: series.map(({ name, kind }) => (kind === "line" ? { name, icon: dash } : { name })),
    },
    xAxis: {
      ...(doubling ? { type: "log", logBase: 2 } : { type: "value" }),
      name: xTitle,
      nameLocation: "middle",
      nameGap: 28,
      min: "dataMin",
    },
    yAxis: { type: logarithmic ? "log" : "value" },
    series: series.map(({ name, points, kind }, i) => ({
      type: "line",
      name,
      data: points.map((point) => [...point]),
      symbol: kind === "line" ? "none" : (symbols[i % symbols.length] as string),
      symbolSize: 16 - 3 * (i % symbols.length),
      lineStyle: { width: kind === "line" ? 1.5 : 0 },
    })),
  });
}

export function laneChart({ xTitle, lanes, ...chart }: LaneChart): string {
  return draw(
    { ...chart, yTitle: "" },
    {
      grid: { left: 220, right: 30, top: 70, bottom: 50 },
      xAxis: { type: "value", name: xTitle, nameLocation: "middle", nameGap: 28 },
      yAxis: { type: "category", data: lanes.map(({ name }) => name), inverse: true, axisTick: { show: false } },
      series: lanes.map(({ name, spans }, lane) => ({
        type: "custom",
        name,
        encode: { x: [1, 2], y: 0 },
        data: spans.map(([start, end]) => [lane, start, end]),
        renderItem: (_, api) => {
          const [from = 0, middle = 0] = api.coord([api.value(1), lane]);
          const [to = 0] = api.coord([api.value(2), lane]);
          return {
            type: "rect",
            shape: { x: from, y: middle - 12, width: Math.max(1, to - from), height: 24 },
            style: { fill: colours[lane % colours.length] as string, stroke: "#ffffff", lineWidth: 0.5 },
          };
        },
      })),
    },
  );
}

function draw({ title, subtitle, yTitle }: Chart, { legend, grid, xAxis, yAxis, series }: EChartsOption): string {
  const chart = init(null, null, { renderer: "svg", ssr: true, ...size });
  chart.setOption({
    animation: false,
    backgroundColor: "#ffffff",
    color: colours,
    title: {
      text: title,
      subtext: subtitle,
      left: "center",
      textStyle: { fontSize: 16 },
      subtextStyle: { fontSize: 11 },
    },
    legend,
    grid: grid ?? { left: 70, right: 30, top: 90, bottom: 80 },
    xAxis,
    yAxis: { ...yAxis, name: yTitle, nameLocation: "middle", nameGap: 45 },
    series,
  } as EChartsOption);
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}
