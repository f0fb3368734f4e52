// Makes what a slide shows as large as there is room for, and no larger; then reveal.js takes over.
// What became of each slide stands in its data-scale: 1 is as the style sheet says.
"use strict";

const ROOM = { picture: 760, still: 688, numbers: 92, memory: 394, chart: 1060, caption: 70, gap: 32, least: 0.5 };
const TALL = 2; // times its width: a still picture so tall would be too narrow beside its caption

// A slide's heading, then one body: pictures in one column, words in the other or below.
function arrange(slide) {
  const [head, ...cells] = [...slide.children].filter(e => !e.matches("aside"));
  const body = document.createElement("div");
  body.className = "body";
  head.after(body);
  const side = slide.dataset.kind == "figure";
  const columns = {};
  for (const cell of cells) {
    const kind = cell.querySelector(".jp-OutputArea-output") ? "picture" : "words";
    if (!columns[kind] || !side) {
      columns[kind] = document.createElement("div");
      columns[kind].className = kind;
      body.append(columns[kind]);
    }
    columns[kind].append(cell);
  }
  return body;
}

// Sizes as they are before anything is enlarged, of a picture that is laid out in so many pixels.
function size(picture, width) {
  picture.style.width = `${width}px`;
  return { width, height: picture.getBoundingClientRect().height };
}

// The row of a still picture near its middle where least is drawn, as a share of its height.
function emptyRow(image) {
  const { naturalWidth: width, naturalHeight: height } = image;
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  let best = { ink: Infinity };
  for (let away = 0; away < height / 6; away++) {
    for (const row of [Math.round(height / 2) - away, Math.round(height / 2) + away]) {
      const { data } = context.getImageData(0, row, width, 1);
      const ink = data.filter((value, n) => n % 4 < 3 && data[n - n % 4 + 3] && value < 250).length;
      if (ink < best.ink) best = { ink, row };
    }
  }
  return best.row / height;
}

// Puts the two halves of a still picture side by side; the first one has the words for both.
function halve(image) {
  const cut = emptyRow(image);
  const second = image.cloneNode();
  second.alt = "";
  const both = document.createElement("div");
  both.className = "halves";
  image.replaceWith(both);
  both.append(image, second);
  [[image, cut, "top"], [second, 1 - cut, "bottom"]].forEach(([half, share, end]) => {
    half.style.aspectRatio = image.naturalWidth / (share * image.naturalHeight);
    half.style.objectPosition = end;
  });
}

// The width to lay out a picture in that needs all of the slide's, or nothing if it stands beside
// its caption: a film taller than wide, a chart with its answers, a still picture that is cut.
function across(body, picture, drawn, found) {
  const rows = picture.querySelector(".dgf-rows");
  const film = rows && found.height > 1.15 * found.width;
  const chart = picture.querySelector(".dgq-one");
  const still = drawn.matches("img") && found.height > TALL * found.width;
  if (!film && !chart && !still) return undefined;
  body.classList.add("across");
  drawn.style.maxWidth = "none";
  if (chart) return ROOM.chart;
  if (still) {
    halve(drawn);
    return 2 * found.width + ROOM.gap;
  }
  const lanes = Math.max(...[...rows.querySelectorAll(".dgf-lanes")].map(e => e.scrollWidth));
  const column = parseFloat(rows.style.getPropertyValue("--code")) + lanes + ROOM.numbers;
  return 2 * column + ROOM.memory;
}

function fitPicture(body, width, height) {
  const picture = body.querySelector(".picture > *");
  const drawn = picture.querySelector("figure, .dgf, img:not(.only-dark)");
  const natural = parseFloat(drawn.style.maxWidth) || parseFloat(drawn.getAttribute("width")) || ROOM.still;
  let found = size(picture, natural);
  let room = ROOM.picture;
  const wide = across(body, picture, drawn, found);
  if (wide) {
    found = size(picture, wide);
    room = width;
    height -= ROOM.caption;
  }
  const scale = Math.min(room / found.width, height / found.height);
  picture.style.zoom = scale;
  picture.style.setProperty("--zoom", scale);
  picture.parentElement.style.width = `${found.width * scale}px`;
}

function fit(slide) {
  const body = arrange(slide);
  const inside = getComputedStyle(slide);
  const top = body.getBoundingClientRect().top - slide.getBoundingClientRect().top;
  const width = slide.clientWidth - parseFloat(inside.paddingLeft) - parseFloat(inside.paddingRight);
  const height = slide.clientHeight - top - parseFloat(inside.paddingBottom);
  const figure = slide.dataset.kind == "figure";
  if (figure) fitPicture(body, width, height);
  const words = figure ? body.querySelector(".words") : body;
  let scale = 1;
  for (; words && scale > ROOM.least; scale -= 0.04) {
    words.style.zoom = scale;
    if (!figure) words.style.width = `${width / scale}px`;
    const box = body.getBoundingClientRect();
    if (box.height <= height + 1 && body.scrollWidth <= body.clientWidth + 1) break;
  }
  slide.dataset.scale = scale.toFixed(2);
}

// The speaker view shows copies of the notes in a window without MathJax's styles and fonts: there
// formulas are MathML, which MathJax has made too, and which browsers draw by themselves. They know
// script letters by their code points alone.
function freeNotes() {
  for (const formula of document.querySelectorAll(".notes mjx-container")) {
    const math = formula.querySelector("math");
    for (const letter of math.querySelectorAll("[mathvariant=script]")) {
      letter.textContent = String.fromCodePoint(0x1d4d0 - 65 + letter.textContent.charCodeAt());
    }
    formula.replaceWith(math);
  }
}

window.deckReady = MathJax.startup.promise.then(async () => {
  freeNotes();
  await Promise.all([...document.images].map(image => image.decode().catch(() => 0)));
  for (const slide of document.querySelectorAll(".slides section section")) fit(slide);
  document.body.classList.remove("measured");
  await Reveal.initialize({
    width: 1280, height: 720, margin: 0, center: false, hash: true, controls: false, slideNumber: "c/t",
    transition: "none", plugins: [RevealNotes],
  });
  const scaled = () => document.body.style.setProperty("--scale", Reveal.getScale());
  scaled();
  Reveal.on("resize", scaled);
  return true;
});
