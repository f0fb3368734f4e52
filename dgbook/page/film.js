function (root, spec) {
  var VERB = {r: "reads", w: "writes", a: "changes"};
  var LEGEND = {gr: "reads global", gw: "writes global", ga: "atomic, global", sr: "reads shared",
    sw: "writes shared", sa: "atomic, shared", rg: "registers only", wt: "waits at the barrier",
    ex: "warp operation", empty: "not written yet", idle: "fetched, not used", old: "touched before"};
  var film = root.querySelector(".dgf-film"), controls = root.querySelector(".dg-controls");
  var slider = controls.querySelector("input[type=range]"), columns = spec.columns.length;
  var thin = columns > 8, told = columns <= 12, real = spec.real, at = 0, lane = 0, cells = [], now = [], words = {}, begun = false, place;

  var size = columns > 16 ? " thin hair" : thin ? " thin" : "";

  function make(tag, name, parent, text) {
    var element = document.createElement(tag);
    if (name) { element.className = name; }
    if (text !== undefined) { element.textContent = text; }
    if (parent) { parent.appendChild(element); }
    return element;
  }
  // Text with code in backticks.
  function tell(parent, text) {
    text.split("`").forEach(function (part, n) {
      if (part) { parent.appendChild(n % 2 ? make("code", "", null, part) : document.createTextNode(part)); }
    });
  }
  function small(text) { return text.charAt(0).toLowerCase() + text.slice(1); }
  function capital(text) { return text.charAt(0).toUpperCase() + text.slice(1); }
  function gap(c) { return !c ? "" : spec.columns[c].first ? " gap apart" : spec.rowwise && c % spec.group === 0 ? " gap" : ""; }
  function heading(c, all) {
    var number = spec.columns[c].number;
    if (all) { return number; }
    return spec.rowwise ? (number % spec.group ? "" : number / spec.group) : number % 8 ? "" : number;
  }
  function moments() { return real ? spec.order : spec.steps; }
  // Whether a row without text says its line, since the row before is another's.
  function named(row, before) {
    return row.kind !== "fold" && before && (before.kind === "fold" || before.line !== row.line);
  }
  function isWrite(kind) { return kind.charAt(1) !== "r"; }

  // ---- what stays

  film.setAttribute("tabindex", "0");
  film.setAttribute("role", "group");
  film.setAttribute("aria-label", "Kernel film: arrow keys step, Home and End jump, space plays");
  film.classList.toggle("beside", spec.beside);
  film.classList.toggle("told", thin && told);
  var orders = make("div", "dgf-orders", film);
  orders.setAttribute("role", "group");
  orders.setAttribute("aria-label", "order of the threads");
  make("span", "", orders, "Order:");
  var choices = ["lanes in step", "one thread at a time"].map(function (text, n) {
    var button = make("button", "", orders, text);
    button.type = "button";
    button.title = n ? "as the simulator ran them" : "as a warp mostly runs them";
    button.addEventListener("click", function () { real = !!n; measure(); go(0); });
    return button;
  });
  var legend = make("div", "dgf-legend"), main = make("div", "dgf-main");
  film.appendChild(legend);
  film.appendChild(main);
  var list = make("div", "dgf-rows", main), side = make("div", "dgf-side", main);
  list.style.setProperty("--code", spec.code + "px");
  make("div", "dgf-head", list, spec.head);
  var heads = make("div", "dgf-row heads", list);
  make("b", "", heads);
  make("code", "", heads);
  make("em", "", heads, thin && spec.rowwise ? "threadIdx.y" : "thread");
  heads = make("div", "dgf-lanes" + size, heads);
  spec.columns.forEach(function (_, c) { make("i", gap(c), heads, heading(c, !thin)); });
  var lines = spec.rows.map(function (row, n) {
    var line = make("div", "dgf-row" + (row.text ? "" : " more") +
      (row.kind === "wt" ? " barrier" : "") + (row.changed ? " changed" : "") +
      (row.kind === "none" ? " declares" : ""), list);
    make("b", "", line, row.text || named(row, spec.rows[n - 1]) ? row.line : "");
    make("code", "", line, row.kind === "fold" ? "    \u22ee " + row.label : row.text);
    make("em", "", line, row.kind === "fold" ? "" : row.label);
    var lanes = make("div", "dgf-lanes" + size, line);
    cells[n] = spec.columns.map(function () { return make("i", "", lanes); });
    line.addEventListener("click", function () {
      var found = moments().findIndex(function (m) { return spec.rows[real ? m[0] : m].line === row.line; });
      if (found >= 0) { go(found); }
    });
    return line;
  });
  var arrow = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  arrow.setAttribute("class", "dgf-arrow");
  arrow.setAttribute("aria-hidden", "true");
  list.appendChild(arrow);
  var says = make("div", "dgf-says", side);
  says.setAttribute("aria-live", "polite");
  var threads = make("div", "dgf-now", side);
  make("div", "dgf-label", threads, !told && spec.rowwise ? "The threads now, in rows of " + spec.group : "The threads now");
  var lanes = make("div", "dgf-lanes" + size, threads);
  spec.columns.forEach(function (column, c) {
    var button = make("button", gap(c).trim(), lanes);
    button.type = "button";
    button.setAttribute("aria-label", column.name + ": show its registers");
    now[c] = {button: button, cell: make("i", "", button)};
    make("small", "", button, heading(c, told) === "" ? "\u00a0" : heading(c, told));
    button.addEventListener("click", function () { lane = c; draw(); });
  });
  spec.arrays.forEach(function (array) {
    var box = make("div", "", side), label = make("div", "dgf-label", box), found = words[array.name] = {};
    make("code", "", label, array.name);
    make("span", "", label, array.shared ? "shared: a row has 32 banks" : array.more ? "global (a part)" : "global");
    var rows = make("div", "dgf-words", box), per = array.sector;
    array.lines.forEach(function (first) {
      for (var s = 0; s < 4; s++) {
        var sector = make("div", "dgf-sector", rows), any = false;
        for (var i = 0; i < per; i++) {
          var element = (first * 4 + s) * per + i - array.offset, inside = element >= 0 && element < array.size;
          var cell = make("i", inside ? "" : "none", sector);
          if (inside) { found[element] = cell; any = true; }
        }
        if (!any) { rows.removeChild(sector); }
      }
    });
  });
  side.classList.toggle("pair", !spec.beside);
  var after = make("div", "dgf-after", side), whose = make("div", "dgf-label", after);
  var registers = make("div", "dgf-registers", after);
  if (!spec.registers.length) { after.hidden = true; }
  var kinds = {};
  spec.rows.forEach(function (row) {
    kinds[row.kind] = 1;
    if (row.array && row.cells) { kinds.old = 1; }
    if (row.kind === "sr") { kinds.empty = 1; }
    if (row.kind.charAt(0) === "g") { kinds.idle = 1; }
  });
  Object.keys(LEGEND).forEach(function (kind) {
    if (!kinds[kind]) { return; }
    var entry = make("span", "", legend);
    make("i", kind, entry);
    entry.appendChild(document.createTextNode(LEGEND[kind]));
  });
  var play = controls.querySelector("button");
  [["\u25c2", "one step back", -1], ["\u25b8", "one step forward", 1]].forEach(function (step) {
    var button = make("button", "dgf-go", null, step[0]);
    button.type = "button";
    button.setAttribute("aria-label", step[1]);
    button.addEventListener("click", function () { go(at + step[2]); });
    play.parentNode.insertBefore(button, play.nextSibling);
  });
  play.parentNode.insertBefore(play.nextSibling.nextSibling, play.nextSibling);
  film.addEventListener("keydown", function (event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) { return; }
    var move = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: moments().length - 1}[event.key];
    if (move !== undefined) { go(move); event.preventDefault(); }
    if (event.key === " " && event.target === film) { play.click(); event.preventDefault(); }
  });
  root.querySelector(".dgf-still").hidden = true;
  film.hidden = false;
  measure();

  function measure() {
    slider.max = moments().length - 1;
    choices.forEach(function (button, n) { button.setAttribute("aria-pressed", !!n === real); });
  }
  function go(time) {
    slider.value = Math.max(0, Math.min(+slider.max, time));
    slider.dispatchEvent(new Event("input"));
  }

  // ---- one moment

  function draw() {
    var moment = moments()[at], last = real ? moment[0] : moment, row = spec.rows[last];
    var column = real ? moment[1] : -1, end = at === moments().length - 1;
    var done = spec.rows.map(function () { return {}; });
    moments().slice(0, at + 1).forEach(function (m) {
      if (real) { done[m[0]][m[1]] = 1; return; }
      Object.keys(spec.rows[m].cells).forEach(function (c) { done[m][c] = 1; });
    });
    if (real) { lane = column; }
    spec.rows.forEach(function (other, r) {
      lines[r].classList.toggle("on", r === last);
      if (other.text) { lines[r].children[2].textContent = other.label; }
      cells[r].forEach(function (cell, c) {
        var word = other.cells[c];
        cell.className = (word === undefined ? "" : other.kind + (done[r][c] ? "" : " todo")) + gap(c) +
          (r === last && (!real || c === column) && word !== undefined ? " here" : "");
        cell.textContent = !thin && typeof word === "number" && done[r][c] ? word : "";
      });
    });
    // A statement's text stands on its first row; a phone has no other.
    for (var n = last; n > 0 && !(spec.rows[n].text && spec.rows[n].line === row.line); n--) {}
    lines[n].classList.add("on");
    place = lines[cells[n][0].offsetParent ? last : n];
    if (!cells[n][0].offsetParent) { lines[n].children[2].textContent = label(last); }
    now.forEach(function (one, c) {
      var acts = real ? c === column : row.cells[c] !== undefined;
      one.cell.className = acts ? row.kind : real && waits(c, done) ? "wt" : "";
      one.cell.textContent = acts && told && typeof row.cells[c] === "number" ? row.cells[c] : "";
      one.button.setAttribute("aria-pressed", c === lane);
    });
    memory(row, last, column, done);
    var stop = real && end && spec.clash;
    arrow.textContent = "";
    says.className = "dgf-says" + (stop ? " stop" : "");
    says.textContent = "";
    var lucky = spec.clash && spec.clash.row !== undefined && !real && end;
    make("b", "", says, stop ? "The simulator objects. " : lucky ?
      (spec.clash.lost ? "An update is lost. " : "A lucky order. ") :
      "Line " + row.line + (label(last) ? ", " + label(last) : "") + ". ");
    tell(says, stop ? spec.clash.says : lucky ? spec.clash.lost ||
      "With all lanes in step nothing goes wrong here, but nothing in the kernel enforces this order." :
      capital(sentence(row, column)));
    if (stop && spec.clash.row !== undefined) { point(spec.clash); }
    show(last);
  }
  function label(n) {
    for (var line = spec.rows[n].line; n >= 0 && spec.rows[n].line === line; n--) {
      if (spec.rows[n].label) { return spec.rows[n].label; }
    }
    return "";
  }
  function sameBlock(c) {
    return spec.columns.filter(function (other) { return other.block === spec.columns[c].block; }).length;
  }
  function waits(c, done) {
    var last = -1;
    spec.rows.forEach(function (_, r) { if (done[r][c]) { last = r; } });
    return last >= 0 && spec.rows[last].kind === "wt" && spec.columns.some(function (other, d) {
      return other.block === spec.columns[c].block && !done[last][d];
    });
  }
  function sentence(row, column) {
    if (row.kind === "wt") {
      if (!real) { return "all threads of the block meet at the barrier."; }
      var came = 0, block = spec.columns[column].block, all = sameBlock(column);
      spec.order.slice(0, at + 1).forEach(function (m) {
        if (spec.rows[m[0]] === row && spec.columns[m[1]].block === block) { came++; }
      });
      if (!spec.whole) { return spec.columns[column].name + " comes to the barrier."; }
      return spec.columns[column].name + (came < all ? " waits: " + came + " of " + all + " have come." :
        " is the last to come, and the barrier opens.");
    }
    var does = row.kind === "rg" ? " works in registers." : row.kind === "ex" ? " takes part in `" + row.array + "`." : "";
    if (real) {
      return spec.columns[column].name + (does || " " + VERB[row.kind.charAt(1)] + " element " + row.cells[column] + " of `" + row.array + "`.");
    }
    return does ? "all threads" + does.replace("works", "work").replace("takes", "take") :
      "the warp" + (spec.blocks > 1 ? " of " + spec.first : "") + " " + VERB[row.kind.charAt(1)] + " `" + row.array + "`: " + row.says + ".";
  }
  function memory(row, last, column, done) {
    var touched = {}, current = {};
    spec.arrays.forEach(function (array) { touched[array.name] = {}; });
    spec.rows.forEach(function (other, r) {
      if (!touched[other.array]) { return; }
      Object.keys(done[r]).forEach(function (c) {
        var mine = r === last && (!real || +c === column), known = touched[other.array];
        if (mine) { current[other.cells[c]] = 1; } else if (!known[other.cells[c]]) { known[other.cells[c]] = isWrite(other.kind) ? 2 : 1; }
        if (!mine && isWrite(other.kind)) { known[other.cells[c]] = 2; }
      });
    });
    spec.rows.forEach(function (other, r) {  // rounds that are left out
      Object.keys(other.fills).forEach(function (c) {
        if (!done.slice(r + 1).some(function (later) { return later[c]; })) { return; }
        Object.keys(other.fills[c]).forEach(function (name) {
          other.fills[c][name].forEach(function (w) { touched[name][w] = 2; });
        });
      });
    });
    spec.arrays.forEach(function (array) {
      Object.keys(words[array.name]).forEach(function (w) {
        var cell = words[array.name][w], here = array.name === row.array && current[w];
        var was = touched[array.name][w];
        cell.parentNode.classList.remove("idle");
        cell.className = here ? (row.hurts && !real ? "hot" : row.kind) :
          was === 2 || was && !array.shared ? "old" : array.shared ? "empty" : "";
      });
      Object.keys(current).forEach(function (w) {
        if (array.name === row.array && !array.shared && words[array.name][w]) {
          words[array.name][w].parentNode.classList.add("idle");
        }
      });
    });
  }
  function show(last) {
    var values = {}, fresh = {};
    moments().slice(0, at + 1).forEach(function (m, n) {
      if (real && m[1] !== lane) { return; }
      var news = spec.rows[real ? m[0] : m].values[lane] || {};
      Object.keys(news).forEach(function (name) { values[name] = news[name]; fresh[name] = n === at; });
    });
    whose.textContent = "Registers of " + small(spec.columns[lane].name);
    registers.textContent = "";
    spec.registers.forEach(function (name) {
      var value = values[name], entry = make("span", fresh[name] ? "new" : "", registers, name);
      make("b", "", entry, value === undefined ? "\u2013" : value === null ? "undefined" :
        Number.isInteger(value) ? value : value.toPrecision(4));
    });
  }
  // The arrow of a race, through the gaps between rows and left of the lanes.
  function point(clash) {
    var target = cells[clash.row][clash.column], word = (words[clash.array] || {})[clash.word];
    target.classList.add("bad");
    now[clash.column].cell.classList.add("bad");
    if (word) { word.className = "hot"; }
    if (clash.row2 === undefined) { return; }
    var source = cells[clash.row2][clash.column2];
    source.classList.add("bad");
    var box = list.getBoundingClientRect(), a = source.getBoundingClientRect(), b = target.getBoundingClientRect();
    if (!b.width) { return; }
    var ax = a.left - box.left, ay = a.top - box.top, bx = b.left - box.left, by = b.top - box.top;
    var begin = clash.column, down = by >= ay, d;
    while (begin > 0 && !spec.columns[begin].first) { begin--; }
    var lane = cells[clash.row][begin].getBoundingClientRect().left - box.left - 8;
    var right = clash.column2 === begin - 1, direct = right || clash.column2 === begin;
    if (clash.row === clash.row2) {
      d = [[ax + a.width / 2, ay - 2], [ax + a.width / 2, ay - 5], [bx + b.width / 2, by - 5], [bx + b.width / 2, by - 2]];
    } else {
      var edge = down ? ay + a.height + 2 : ay - 2, middle = by + b.height / 2;
      d = direct ? [[right ? ax + a.width + 2 : ax - 2, ay + a.height / 2]] : [[ax + a.width / 2, edge], [ax + a.width / 2, edge + (down ? 2 : -2)]];
      d.push([lane, d[d.length - 1][1]]);
      d = d.concat(clash.column === begin ? [[lane, middle], [bx - 2, middle]] :
        [[lane, by - 4], [bx + b.width / 2, by - 4], [bx + b.width / 2, by - 2]]);
    }
    var tip = d[d.length - 1], side = clash.row !== clash.row2 && clash.column === begin;
    [["M" + d.join("L"), "halo"], ["M" + d.join("L"), "bad"], ["M" + tip + (side ? "l-7 -4.5v9z" : "l-4.5 -5h9z"), "head"]].forEach(function (part) {
      var path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", part[0]);
      path.setAttribute("class", part[1]);
      arrow.appendChild(path);
    });
  }
  window.addEventListener("resize", function () { if (root.isConnected) { draw(); } });
  // The current line stays between the page's head and the controls, while these are in view.
  function follow() {
    var bar = controls.getBoundingClientRect();
    if (bar.top < window.innerHeight && bar.bottom > 0) { place.scrollIntoView({block: "nearest"}); }
  }
  return function (frame, positions) {
    at = Math.min(positions[0], moments().length - 1);
    draw();
    if (begun) { follow(); }
    begun = true;
  };
}
