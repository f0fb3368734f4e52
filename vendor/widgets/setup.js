// Loaded between require.js and embed-amd.js. It tells the widget manager where it is, so that it
// finds its icon fonts beside this file; keeps the theme from replacing the <i> elements that widgets
// hold on to; and gives widgets MathJax 3 under the name they know MathJax 2 by.
(() => {
  const here = new URL(".", document.currentScript.src).href;
  const modules = "base base7 controls controls7 html-manager html-manager/dist/libembed-amd";
  const paths = modules.split(" ").map((name) => [`@jupyter-widgets/${name}`, `${here}embed-amd`]);
  requirejs.config({ paths: Object.fromEntries(paths) });
  window.addEventListener("load", () => {
    if (window.FontAwesome) {
      window.FontAwesome.config.autoReplaceSvg = "nest";
    }
    if (window.MathJax) {
      window.MathJax.Hub = {
        Queue: ([, , element]) => {
          element.classList.add("mathjax_process"); // elsewhere on the page it leaves dollars alone
          MathJax.startup.promise.then(() => MathJax.typesetPromise([element]));
        },
      };
    }
  });
})();
