// Loaded between require.js and embed-amd.js: tells the widget manager where it is, so that it finds
// its icon fonts beside this file, and gives it MathJax 3 under the name it knows MathJax 2 by.
(() => {
  const here = new URL(".", document.currentScript.src).href;
  const modules = "base base7 controls controls7 html-manager html-manager/dist/libembed-amd";
  const paths = modules.split(" ").map((name) => [`@jupyter-widgets/${name}`, `${here}embed-amd`]);
  requirejs.config({ paths: Object.fromEntries(paths) });
  window.addEventListener("load", () => {
    if (window.MathJax) {
      window.MathJax.Hub = {
        Queue: ([, , element]) =>
          MathJax.startup.promise.then(() => MathJax.typesetPromise([element])),
      };
    }
  });
})();
