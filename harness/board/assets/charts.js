// Draws every <figure data-chart> from a table of the page, so that a screen reader can read the
// data that the chart shows. Colours come from the style sheet, in both schemes.
"use strict";

const BARS = 30;
const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false };
const CORES = { "cuda-cores": "CUDA cores", "tensor-cores": "tensor cores" };

const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function layout(extra) {
  const axis = {
    gridcolor: colour("line"),
    zerolinecolor: colour("line"),
    linecolor: colour("line"),
    fixedrange: true,
    automargin: true,
  };
  const { xaxis, yaxis, yaxis2, ...rest } = extra;
  const titled = ({ title, ...axis }) => (title ? { ...axis, title: { text: title, font: { size: 13 } } } : axis);
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 13, color: colour("text") },
    hoverlabel: { bgcolor: colour("page"), font: { color: colour("text") }, namelength: -1 },
    hovermode: "closest",
    dragmode: false,
    margin: { l: 8, r: 12, t: 28, b: 8 },
    legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" },
    ...rest,
    xaxis: titled({ ...axis, ...xaxis }),
    yaxis: titled({ ...axis, ...yaxis }),
    ...(yaxis2 && { yaxis2: titled({ ...axis, ...yaxis2 }) }),
  };
}

// Plotly interprets some HTML in labels, so names from submissions are escaped.
const plain = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// Returns at most this many columns of a text; an emoji or an ideograph takes two.
function shortened(text, columns) {
  let left = columns;
  let end = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    left -= segment.codePointAt(0) > 0x10ff ? 2 : 1;
    if (left < 0) return `${text.slice(0, end)}…`;
    end += segment.length;
  }
  return text;
}

const narrow = () => window.matchMedia("(max-width: 640px)").matches;

// Returns the body of a figure's table, as a list of cells for each row. A cell is its data-value
// if it has one, and its text otherwise.
function tableOf(figure) {
  return [...figure.querySelectorAll("tbody tr")].map((row) =>
    [...row.cells].map((cell) =>
      cell.dataset.value === undefined ? cell.textContent : cell.dataset.value,
    ),
  );
}

const numbers = (rows, column) => rows.map((row) => Number(row[column]));

function scores(figure) {
  const table = document.getElementById(figure.dataset.rowsOf);
  const chosen = table.judged ? table.judged.chosen : [...table.tBodies[0].rows];
  const best = chosen
    .slice()
    .sort((a, b) => b.dataset.score - a.dataset.score)
    .slice(0, BARS);
  figure.querySelector("[data-chart-note]").textContent =
    chosen.length > BARS ? `The best ${BARS} of ${chosen.length}.` : "";
  const name = (row) => row.querySelector(".kernel bdi").textContent;
  const author = (row) => row.querySelector(".author").textContent;
  const label = (row) => plain(shortened(name(row), narrow() ? 18 : 30));
  const traces = Object.keys(CORES).map((cores) => {
    const rows = best.filter((row) => row.dataset.cores === cores);
    const score = rows.map((row) => Number(row.dataset.score));
    return {
      type: "scatter",
      mode: "markers+text",
      name: CORES[cores],
      y: rows.map((row) => best.indexOf(row)),
      x: score,
      text: score.map((value) => ` ${value.toFixed(3)} `),
      // Not across the line of cuBLAS.
      textposition: score.map((value) => (value > 0.6 && value < 1 ? "middle left" : "middle right")),
      textfont: { size: 11, color: colour("muted") },
      cliponaxis: false,
      error_x: {
        type: "data",
        symmetric: false,
        array: rows.map((row) => row.dataset.high - row.dataset.score),
        arrayminus: rows.map((row) => row.dataset.score - row.dataset.low),
        color: colour("text"),
        thickness: 1.5,
        width: 4,
      },
      marker: { color: colour(cores === "tensor-cores" ? "second" : "first"), size: 9 },
      customdata: rows.map((row) => [plain(name(row)), plain(author(row))]),
      hovertemplate: "%{customdata[0]}<br>by %{customdata[1]}<br>%{x:.3f} × cuBLAS<extra></extra>",
    };
  });
  const ends = best.map((row) => Number(row.dataset.score));
  const range = [Math.min(0.9, ...ends) / 1.2, Math.max(1.1, ...ends) * (narrow() ? 1.9 : 1.4)];
  const ticks = [-3, -2, -1, 0, 1, 2, 3]
    .flatMap((power) => [1, 2, 5].map((digit) => Number(`${digit}e${power}`)))
    .filter((tick) => tick >= range[0] && tick <= range[1]);
  return [
    traces.filter((trace) => trace.x.length),
    layout({
      height: Math.max(140, 84 + 22 * best.length),
      showlegend: true,
      xaxis: { type: "log", range: range.map(Math.log10), tickvals: ticks, ticktext: ticks.map(String) },
      yaxis: {
        range: [best.length - 0.4, -0.6],
        tickvals: best.map((_, place) => place),
        ticktext: best.map(label),
        zeroline: false,
      },
      shapes: [
        { type: "line", x0: 1, x1: 1, yref: "paper", y0: 0, y1: 1, line: { color: colour("text"), width: 1.5, dash: "dot" } },
      ],
      annotations: [
        { x: 0, yref: "paper", y: 0, xanchor: "left", yanchor: "bottom", text: " cuBLAS", showarrow: false },
      ],
    }),
  ];
}

function rounds(figure) {
  const rows = tableOf(figure);
  const number = numbers(rows, 0);
  const counts = rows.map((row) => row[6] === "yes");
  const series = (name, column, tone) => ({
    type: "scatter",
    mode: "markers",
    name,
    x: number,
    y: numbers(rows, column),
    marker: {
      color: tone,
      opacity: 1,
      size: counts.map((yes) => (yes ? 6 : 9)),
      symbol: counts.map((yes) => (yes ? "circle" : "x-thin")),
      line: { color: tone, width: counts.map((yes) => (yes ? 0 : 2)) },
    },
    hovertemplate: `round %{x}: %{y:.3f} ms<extra>${name}</extra>`,
  });
  return [
    [
      series("kernel", 1, colour("first")),
      series("cuBLAS", 2, colour("muted")),
      {
        type: "scatter",
        mode: "lines",
        name: "SM clock",
        x: number,
        y: numbers(rows, 3),
        yaxis: "y2",
        line: { color: colour("second"), width: 1.5, shape: "hvh" },
        hovertemplate: "round %{x}: %{y} MHz<extra>SM clock</extra>",
      },
    ],
    layout({
      height: 420,
      showlegend: true,
      xaxis: { title: "round", anchor: "y2" },
      yaxis: { title: "ms", domain: [0.34, 1] },
      yaxis2: {
        title: "MHz",
        domain: [0, 0.24],
        nticks: 4,
      },
    }),
  ];
}

const DRAW = { scores, rounds };

function draw(figure) {
  const [traces, shape] = DRAW[figure.dataset.chart](figure);
  Plotly.react(figure.querySelector(".chart"), traces, shape, CONFIG);
}

const figures = [...document.querySelectorAll("figure[data-chart]")];
const drawAll = () => figures.forEach(draw);

for (const figure of figures) {
  const table = document.getElementById(figure.dataset.rowsOf);
  table?.addEventListener("chosen", () => draw(figure));
}
for (const query of ["(prefers-color-scheme: dark)", "(max-width: 640px)"]) {
  window.matchMedia(query).addEventListener("change", drawAll);
}
document.documentElement.classList.add("charts");
drawAll();
