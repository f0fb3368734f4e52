// Makes what a slide shows as large as there is room for, and no larger; then reveal.js takes over.
// What became of each slide stands in its data-scale: 1 is as the style sheet says.
"use strict";

const ROOM = { picture: 760, still: 688, numbers: 92, memory: 394, caption: 70, least: 0.5 };

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

function fitPicture(body, width, height) {
  const picture = body.querySelector(".picture > *");
  const drawn = picture.querySelector("figure, .dgf, img:not(.only-dark)");
  const natural = parseFloat(drawn.style.maxWidth) || parseFloat(drawn.getAttribute("width")) || ROOM.still;
  let found = size(picture, natural);
  let room = ROOM.picture;
  const rows = picture.querySelector(".dgf-rows");
  if (rows && found.height > 1.15 * found.width) {
    body.classList.add("tall");
    drawn.style.maxWidth = "none";
    const lanes = Math.max(...[...rows.querySelectorAll(".dgf-lanes")].map(e => e.scrollWidth));
    const column = parseFloat(rows.style.getPropertyValue("--code")) + lanes + ROOM.numbers;
    found = size(picture, 2 * column + ROOM.memory);
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

window.deckReady = MathJax.startup.promise.then(async () => {
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
