function (root, spec) {
  var all = root.querySelector(".dgq-all"), one = root.querySelector(".dgq-one");
  // Lessons lie beside this page where it is a page of the book, or a notebook in JupyterLab.
  var kind = location.pathname.match(/\/\d\d[a-z]?_\w+\.(html|ipynb)$/);
  var asked = spec.questions.length - 1, answers = [], problem = "";

  function make(tag, name, parent, text) {
    var element = document.createElement(tag);
    if (name) { element.className = name; }
    if (text !== undefined) { element.textContent = text; }
    if (parent) { parent.appendChild(element); }
    return element;
  }
  function button(name, parent, text, does) {
    var made = make("button", name, parent, text);
    made.type = "button";
    made.addEventListener("click", function () { does(); go(true); });
    return made;
  }
  // A paragraph: what it begins with, why, and where to read on.
  function reason(parent, said, entry, why) {
    var line = make("p", "", parent);
    if (said) { make("b", "", line, said.charAt(0).toUpperCase() + said.slice(1) + "."); }
    line.appendChild(document.createTextNode((said ? " " : "") + why));
    entry.lessons.forEach(function (lesson, n) {
      line.appendChild(document.createTextNode(n ? ", " : " Read on: "));
      var link = make(kind ? "a" : "span", "", line, "lesson " + lesson[0]);
      if (kind) { link.href = lesson[1] + "." + kind[1]; }
    });
    if (entry.lessons.length) { line.appendChild(document.createTextNode(".")); }
  }
  // The end that the answers lead to, or -1 while a question is open.
  function end() {
    var found = answers.indexOf(true);
    return found >= 0 && found < asked ? found : answers.length >= asked ? asked : -1;
  }
  // The question that an answer was given to, by its place among the answers.
  function question(place) {
    var last = end(), before = last < 0 ? answers.length : Math.min(last + 1, asked);
    return place < before || last < 0 ? spec.questions[place] : spec.then[place - before];
  }

  var follow = make("label", "dgq-follow", one);
  make("span", "", follow, "Answer for");
  var select = make("select", "", follow);
  make("option", "", select, "my own problem");
  spec.problems.forEach(function (known) { make("option", "", select, known[0]); });
  select.addEventListener("change", function () {
    var known = spec.problems[select.selectedIndex - 1];
    answers = [];
    if (known) {
      for (var n = 0; n < Math.min(known[1] + 1, asked); n++) { answers.push(n === known[1]); }
    }
    go(false);
  });
  var card = make("div", "", one), path = make("div", "dgq-path", one);
  card.setAttribute("aria-live", "polite");

  function ask(entry, count) {
    make("p", "dgq-small", card, count);
    make("p", "dgq-ask", card, entry.ask).tabIndex = -1;
    var keys = make("div", "dgq-keys", card);
    button("yes", keys, "Yes", function () { answers.push(true); });
    button("no", keys, "No", function () { answers.push(false); });
    make("p", "", card, entry.tell);
    var more = make("details", "", card);
    make("summary", "", more, "Where a yes leads, and why");
    reason(more, entry.end, entry, entry.why);
  }
  function showEnd(last) {
    var entry = spec.questions[last], more = answers.slice(Math.min(last + 1, asked));
    card.className = "dgq-card " + (entry.inside ? "inside" : "outside");
    make("p", "dgq-small", card, "The chart ends " + (entry.inside ? "in" : "outside") + " this book, at");
    make("p", "dgq-ask", card, entry.end).tabIndex = -1;
    reason(card, "", entry, entry.why);
    var same = spec.problems.filter(function (known) { return known[1] === last; });
    if (same.length) {
      make("p", "dgq-small", card, "Of our problems, here end: " + same.map(function (known) { return known[0]; }).join("; ") + ".");
    }
    if (!entry.goes_on) { return; }
    make("hr", "", card);
    make("p", "dgq-small", card, entry.goes_on);
    more.forEach(function (yes, n) {
      var then = spec.then[n];
      reason(card, yes ? then.end : then.no, then, yes ? then.why : then.why_no);
    });
    if (more.length < spec.then.length) {
      ask(spec.then[more.length], "Then, question " + (more.length + 1) + " of " + spec.then.length);
    }
  }
  function go(focus) {
    card.textContent = path.textContent = "";
    card.className = "dgq-card";
    var last = end();
    if (last < 0) {
      ask(spec.questions[answers.length], "Question " + (answers.length + 1) + " of " + asked);
    } else {
      showEnd(last);
    }
    if (answers.length) { make("span", "", path, "Change an answer:"); }
    answers.forEach(function (yes, place) {
      var chip = button("", path, question(place).ask + " " + (yes ? "Yes" : "No"), function () {
        answers = answers.slice(0, place);
        select.selectedIndex = 0;
      });
      chip.title = "Go back to this question";
    });
    if (answers.length) {
      button("", path, "Start again", function () { answers = []; select.selectedIndex = 0; });
    }
    // A click removes its button, so that the keyboard goes on from the next one.
    if (focus) { (card.querySelector("button") || card.querySelector(".dgq-ask")).focus({preventScroll: true}); }
  }
  return function () { all.hidden = true; one.hidden = false; go(false); };
}
