// What test_pages.py asks of a page: pageFacts() once, layoutFacts() in each mode and width.

window.pageFacts = () => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const figures = all("main article :is(img, svg, canvas)").filter(
    (e) => !e.closest("[aria-hidden=true], button, mjx-container") && !e.parentElement.closest("svg"),
  );
  const alt = (e) => e.getAttribute("alt") ?? e.getAttribute("aria-label") ?? "";
  return {
    withoutAlt: figures.filter((e) => !alt(e).trim()).map((e) => e.outerHTML.slice(0, 120)),
    alts: figures.map(alt).filter((text) => text.trim()),
    formulas: all("span.math, div.math").length,
    typeset: all("span.math mjx-container, div.math mjx-container").length,
    mathErrors: all("mjx-merror, [data-mjx-error]").map((e) => e.textContent),
    headings: all("main article :is(h1, h2, h3, h4, h5, h6)").map((e) => Number(e.tagName[1])),
    links: all("a[href]").map((e) => e.href.split("#")[0]),
    firstPaint: performance.getEntriesByName("first-contentful-paint").map((e) => e.startTime),
  };
};

// ---------------------------------------------------------------------------------- contrast

const parse = (color) => {
  const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
  return [r, g, b, a];
};
const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((c) => {
    const s = c / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};

// The color behind an element: its ancestors' backgrounds, the topmost over the ones below. Most
// elements share their ancestors, so what was found is kept while nothing changes.
const backdrop = (element, known) => {
  if (!element) return [255, 255, 255];
  if (!known.has(element)) {
    const layer = parse(getComputedStyle(element).backgroundColor);
    const opaque = layer[3] === 1;
    known.set(element, opaque ? layer.slice(0, 3) : over(layer, backdrop(element.parentElement, known)));
  }
  return known.get(element);
};

const isSeen = (element) => {
  const box = element.getBoundingClientRect();
  return (
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    box.width > 1 &&
    box.height > 1
  );
};

// Elements that hold text of their own. What only shows under the mouse, what is for screen readers
// alone and what is switched off is left out.
const LEFT_OUT = ".headerlink, .visually-hidden, mjx-assistive-mml, [disabled], script, style, noscript";
const texts = () => {
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    if (walker.currentNode.textContent.trim()) found.add(walker.currentNode.parentElement);
  }
  return [...found].filter((e) => e !== document.body && !e.closest(LEFT_OUT) && isSeen(e));
};

const paleTexts = (elements) => {
  const found = {};
  const known = new Map();
  for (const e of elements) {
    const style = getComputedStyle(e);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const behind = backdrop(e, known);
    const ratio = contrast(over(parse(style.color), behind), behind);
    if (ratio < (large ? 3 : 4.5)) {
      const key = `${style.color} on ${behind.map(Math.round)}`;
      found[key] ??= `${ratio.toFixed(2)}: ${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 30)}`;
    }
  }
  return found;
};

// ------------------------------------------------------------------------------------ layout

// Folded code, solutions and the like, as a reader opens them.
window.openAll = () => {
  for (const e of document.querySelectorAll("main details")) e.open = true;
  for (const e of document.querySelectorAll("main .toggle-hidden")) e.classList.remove("toggle-hidden");
};

// Equations, tables and listings that are wider than their place: by how much, and whether the page
// shows that they scroll.
const KINDS = {
  equation: "div.math, mjx-container[display=true]",
  table: "table",
  listing: "div.highlight pre, pre.literal-block, .output pre",
};
const cutOff = () => {
  const found = [];
  for (const [kind, selector] of Object.entries(KINDS)) {
    for (const e of document.querySelectorAll(selector)) {
      if (!e.closest("main article") || !e.checkVisibility()) continue;
      let scroller = e;
      while (scroller.tagName !== "ARTICLE" && !/auto|scroll/.test(getComputedStyle(scroller).overflowX)) {
        scroller = scroller.parentElement;
      }
      const over = (box) => (box.tagName === "ARTICLE" ? 0 : box.scrollWidth - box.clientWidth);
      const pixels = Math.max(over(e), over(scroller));
      if (pixels <= 1) continue;
      const frame = e.closest(".dg-scrolls");
      const hint = frame?.previousElementSibling;
      found.push({
        kind,
        pixels,
        text: e.textContent.trim().slice(0, 40),
        framed: frame !== null && parseFloat(getComputedStyle(frame).borderRightWidth) >= 2,
        said: hint?.classList.contains("dg-scroll-hint") && isSeen(hint),
      });
    }
  }
  return found;
};

window.layoutFacts = () => {
  const root = document.documentElement;
  const overflow = root.scrollWidth > root.clientWidth;
  const sticksOut = (e) => e.getBoundingClientRect().right > root.clientWidth + 1 && isSeen(e);
  const elements = texts();
  const pale = paleTexts(elements);
  return {
    overflow,
    widest: overflow
      ? [...document.querySelectorAll("main *")].filter(sticksOut).slice(0, 5).map((e) => e.outerHTML.slice(0, 100))
      : [],
    cut: cutOff(),
    texts: elements.length,
    pale: Object.keys(pale).length ? pale : null,
    pictures: [...document.querySelectorAll("main article img")].filter(isSeen).map((e) => ({
      source: e.getAttribute("src"),
      bottom: e.getBoundingClientRect().bottom + window.scrollY,
    })),
  };
};

window.focusFacts = () => {
  const e = document.activeElement;
  const style = getComputedStyle(e);
  const box = e.getBoundingClientRect();
  return {
    tag: e.tagName,
    text: (e.textContent.trim() || e.getAttribute("aria-label") || "").slice(0, 40),
    onScreen: box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && isSeen(e),
    marked:
      (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none",
  };
};
