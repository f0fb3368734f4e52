// What is wider than its place gets a frame, a line that says that it scrolls, and keyboard focus.
"use strict";
(() => {
  const WORDS = { listing: "This listing scrolls sideways →", table: "This table scrolls sideways →" };
  const KINDS = {
    listing: ".bd-article pre",
    table: ".bd-article :is(.table-scroll, .pst-scrollable-table-container, table.table)",
    equation: ".bd-article div.math",
  };
  // What is inside may scroll instead: a formula in its line, a table in its frame.
  const INNER = { table: "table", equation: "mjx-container" };
  const wide = (e) => e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1;

  const mark = (element, kind) => {
    const inner = INNER[kind] ? element.querySelector(INNER[kind]) : null;
    const scrolls = wide(element) || (inner !== null && wide(inner));
    if (element.classList.contains("dg-scrolls") === scrolls) return;
    element.classList.toggle("dg-scrolls", scrolls);
    const hint = element.previousElementSibling;
    if (!scrolls) {
      if (hint?.classList.contains("dg-scroll-hint")) hint.remove();
      return;
    }
    if (!element.hasAttribute("tabindex")) element.tabIndex = 0;
    if (WORDS[kind]) {
      const words = document.createElement("p");
      words.className = "dg-scroll-hint";
      words.textContent = WORDS[kind];
      element.before(words);
    }
  };

  const markAll = () => {
    for (const [kind, selector] of Object.entries(KINDS)) {
      for (const element of document.querySelectorAll(selector)) {
        if (!element.parentElement.closest(".table-scroll, .pst-scrollable-table-container")) mark(element, kind);
      }
    }
  };

  let asked = 0;
  const soon = () => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(markAll);
  };
  window.addEventListener("load", () => {
    soon();
    window.MathJax?.startup?.promise?.then(soon);
  });
  window.addEventListener("resize", soon);
  document.addEventListener("toggle", soon, true); // a folded cell or solution was opened
  document.addEventListener("click", () => setTimeout(soon, 50)); // a dropdown, which is no <details>
})();
