(function () {
  "use strict";

  // ---- tables: clicking a header sorts, numbers by data-sort ------------------------------------------------
  function keyOf(row, place) {
    var cell = row.cells[place];
    if (!cell) { return null; }
    if (cell.hasAttribute("data-sort")) {
      var text = cell.getAttribute("data-sort");
      return text === "" ? null : Number(text);
    }
    return cell.textContent.trim().toLowerCase();
  }

  function compare(one, other) {
    if (one === null || other === null) { return 0; }
    if (typeof one === "number" && typeof other === "number") { return one - other; }
    return String(one).localeCompare(String(other), "en", { numeric: true });
  }

  function sortBy(table, place, header) {
    var down = header.getAttribute("aria-sort") === "descending";
    var body = table.tBodies[0];
    var rows = Array.prototype.slice.call(body.rows);
    var isNumber = rows.some(function (row) { return typeof keyOf(row, place) === "number"; });
    var sign = header.hasAttribute("aria-sort") ? (down ? 1 : -1) : (isNumber ? -1 : 1);
    rows.map(function (row, number) { return [keyOf(row, place), number, row]; })
      .sort(function (one, other) {
        if ((one[0] === null) !== (other[0] === null)) { return one[0] === null ? 1 : -1; }  // missing values stay below
        return sign * compare(one[0], other[0]) || one[1] - other[1];
      })
      .forEach(function (entry) { body.appendChild(entry[2]); });
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell) { cell.removeAttribute("aria-sort"); });
    header.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    table.dispatchEvent(new Event("sorted", { bubbles: true }));
  }

  document.querySelectorAll("table.sortable").forEach(function (table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (header, place) {
      header.tabIndex = 0;
      header.title = "sort";
      header.addEventListener("click", function () { sortBy(table, place, header); });
      header.addEventListener("keydown", function (event) {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sortBy(table, place, header); }
      });
    });
  });

  // ---- filters: entries without all chosen values are hidden; long lists have pages -------------------------
  var PAGE = 100;

  document.querySelectorAll(".filtered").forEach(function (part) {
    var selects = Array.prototype.slice.call(part.querySelectorAll("select[data-filter]")), first = 0;
    if (!selects.length) { return; }
    var pager = part.querySelector(".pager");

    function nameOf(select) { return "data-" + select.dataset.filter.replace(/ /g, "-"); }

    function show() {
      var entries = Array.prototype.slice.call(part.querySelectorAll("[" + nameOf(selects[0]) + "]"));
      var kept = entries.filter(function (entry) {
        return selects.every(function (select) {
          return select.value === "" || entry.getAttribute(nameOf(select)) === select.value;
        });
      });
      if (first >= kept.length) { first = 0; }
      entries.forEach(function (entry) { entry.hidden = true; });
      kept.forEach(function (entry, place) { entry.hidden = pager && (place < first || place >= first + PAGE); });
      if (pager) {
        pager.querySelector("span").textContent = (kept.length ? first + 1 : 0) + " to " +
          Math.min(first + PAGE, kept.length) + " of " + kept.length;
        pager.querySelector("[data-step='-1']").disabled = first === 0;
        pager.querySelector("[data-step='1']").disabled = first + PAGE >= kept.length;
      }
    }

    selects.forEach(function (select) { select.addEventListener("change", function () { first = 0; show(); }); });
    part.addEventListener("sorted", show);
    if (pager) {
      pager.hidden = false;
      pager.querySelectorAll("button").forEach(function (button) {
        button.addEventListener("click", function () { first += PAGE * Number(button.dataset.step); show(); });
      });
      show();
    }
  });

  // ---- charts ------------------------------------------------------------------------------------------------
  var dark = window.matchMedia("(prefers-color-scheme: dark)");

  function theme() {
    var ink = dark.matches ? "#d8dee6" : "#333a42", faint = dark.matches ? "#39414b" : "#e3e6ea";
    return {
      background: "transparent", font: "system-ui, sans-serif", view: { stroke: null },
      axis: { labelColor: ink, titleColor: ink, gridColor: faint, domainColor: ink, tickColor: faint,
              labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" },
      legend: { labelColor: ink, titleColor: ink, labelFontSize: 12, symbolStrokeWidth: 2 }, text: { color: ink },
    };
  }

  function chooser(controls, label, options, redraw) {
    var select = document.createElement("select"), wrap = document.createElement("label");
    wrap.className = "filter";
    wrap.textContent = label + " ";
    options.forEach(function (option) { select.add(new Option(option[1], option[0])); });
    select.addEventListener("change", redraw);
    wrap.appendChild(select);
    controls.appendChild(wrap);
    return select;
  }

  // ---- methods: a limited number at once, at the start the first ones ---------------------------------------
  var MOST = 8;

  function picker(box, methods, chosen, redraw) {
    box.textContent = "";
    if (methods.length <= MOST) { return; }
    var legend = document.createElement("legend");
    legend.textContent = "methods, " + MOST + " at most";
    box.appendChild(legend);
    methods.forEach(function (method) {
      var label = document.createElement("label"), input = document.createElement("input");
      input.type = "checkbox";
      input.checked = chosen.indexOf(method) >= 0;
      input.disabled = !input.checked && chosen.length >= MOST;
      input.addEventListener("change", function () {
        var at = chosen.indexOf(method);
        if (at >= 0) { chosen.splice(at, 1); } else { chosen.push(method); }
        redraw();
      });
      label.appendChild(input);
      label.appendChild(document.createTextNode(" " + method));
      box.appendChild(label);
    });
  }

  function coloured(spec, methods, colours, narrow) {
    spec = JSON.parse(JSON.stringify(spec));
    (spec.layer || [spec]).forEach(function (layer) {
      var range = methods.map(function (method) { return colours[method] || "#999"; });
      ["color", "shape"].forEach(function (name) {
        var channel = layer.encoding[name];
        if (!channel || channel.field !== "method") { return; }
        channel.scale = Object.assign({ domain: methods }, name === "color" ? { range: range } : {});
        if (channel.legend) { channel.legend.orient = narrow ? "bottom" : "right"; }
      });
    });
    return spec;
  }

  function withAxes(spec, y, x, isLog) {
    (spec.layer || [spec]).forEach(function (layer) {
      if (y && layer.encoding.y) { layer.encoding.y.title = y; }
      if (x && layer.encoding.x) { layer.encoding.x.title = x; }
      if (isLog && layer.encoding.y) {
        layer.encoding.y.scale = Object.assign({}, layer.encoding.y.scale, { type: "log", nice: false });
        layer.encoding.y.axis = { tickCount: 6 };
      }
    });
    return spec;
  }

  // ---- score against bytes: names next to their marks, moved apart if they would touch --------------------
  function spreadOut(labels, room) {
    labels.sort(function (one, other) { return one.y - other.y; });
    var blocks = [];  // touching labels, and the position of the lowest
    labels.forEach(function (label) {
      blocks.push([[label], label.y]);
      while (blocks.length > 1) {
        var lower = blocks[blocks.length - 2], upper = blocks[blocks.length - 1];
        if (lower[1] + room * lower[0].length <= upper[1]) { break; }
        var all = lower[0].concat(upper[0]), sum = 0;
        all.forEach(function (each, place) { sum += each.y - room * place; });
        blocks.splice(-2, 2, [all, sum / all.length]);
      }
    });
    blocks.forEach(function (block) {
      block[0].forEach(function (label, place) { label.y = block[1] + room * place; });
    });
  }

  function against(values, by, isLog, height, spec) {
    var up = isLog ? Math.log : Number, down = isLog ? Math.exp : Number;
    var sent = values.map(function (value) { return value[by]; }).filter(function (size) { return size > 0; });
    var least = Math.min.apply(null, sent), ratio = Math.max(Math.max.apply(null, sent) / least, 4);
    var ends = [];
    values.forEach(function (value) { ends.push(up(value.low === null ? value.value : value.low)); });
    values.forEach(function (value) { ends.push(up(value.high === null ? value.value : value.high)); });
    var low = Math.min.apply(null, ends), high = Math.max.apply(null, ends), pad = 0.08 * (high - low || 1);
    var x = [least / Math.pow(ratio, 0.1), least * Math.pow(ratio, 1.5)], room = 15 / height * (high - low + 2 * pad);
    var groups = {};
    values = values.map(function (value) {
      var size = value[by], step = size > 0 ? Math.round(8 * Math.log(size / least) / Math.log(ratio)) : "silent";
      var label = { y: up(value.value) };
      (groups[step] = groups[step] || []).push(label);
      return Object.assign({}, value, {
        x: size, bytes: value.sizes[by], spread: size > 0 && value.low !== null, sends: size > 0, silent: !(size > 0),
        leads: size > 0, named: true, at: size > 0 ? size * Math.pow(ratio, 0.05) : x[0], place: label,
      });
    });
    Object.keys(groups).forEach(function (step) { spreadOut(groups[step], room); });
    values.forEach(function (value) {  // the name is above the dashed line
      value.label = down(value.place.y + (value.silent ? 0.55 * room : 0));
      delete value.place;
    });
    spec.layer.forEach(function (layer) {
      if (layer.encoding.x) { layer.encoding.x.scale.domain = x; }
      if (layer.encoding.x && by === "time") { layer.encoding.x.axis = { format: "~g", tickCount: 6, labelOverlap: true }; }
      layer.encoding.y.scale = { domain: [down(low - pad), down(high + pad)], nice: false, zero: false };
    });
    return values;
  }

  // ---- time on a network: Deployment.run_seconds of benchmarks/costs/networks.py, all clients of a round at once ----
  function roundSeconds(turns, at) {
    var served = turns.map(function (turn) { return turn[4] / at.server; });
    var least = served.reduce(function (sum, each) { return sum + each; }, 0);
    var seconds = turns.map(function (turn) {
      return turn[0] / at.network.down + turn[1] / at.network.up + turn[2] * at.network.latency / 2 + turn[3] / at.rate;
    });
    var normal = seconds.map(function (each, place) { return each + served[place]; });
    var slow = seconds.map(function (each, place) { return at.slowdown * each + served[place]; });
    var times = normal.concat(slow).map(function (time) { return Math.max(time, least); });
    var expected = 0, below = 0;
    times.sort(function (one, other) { return one - other; }).forEach(function (time) {
      var reached = normal.reduce(function (chance, usual, place) {
        return chance * ((1 - at.stragglers) * (usual <= time) + at.stragglers * (slow[place] <= time));
      }, 1);
      expected += time * (reached - below);
      below = reached;
    });
    return expected;
  }

  function minutes(runs, at) {  // a mean over seeds
    var sum = 0;
    runs.forEach(function (rounds) {
      rounds.forEach(function (entry) { sum += entry[0] * roundSeconds(entry[1], at); });
    });
    return sum / runs.length / 60;
  }

  // The reader's network, device and share of stragglers, for charts against time.
  function deployment(controls, presets, redraw) {
    var box = document.createElement("span"), slider = document.createElement("input");
    function named(entries) { return Object.keys(entries).map(function (id) { return [id, entries[id].name]; }); }
    var network = chooser(box, "network", named(presets.networks), redraw);
    var device = chooser(box, "device", named(presets.devices), redraw), label = document.createElement("label");
    label.className = "filter";
    slider.type = "range";
    slider.min = slider.value = 0;
    slider.max = 50;
    slider.addEventListener("input", redraw);
    label.append("", slider);
    box.append(label);
    controls.appendChild(box);
    return function (isShown) {
      box.hidden = !isShown;
      label.firstChild.textContent = slider.value + " % of clients " + presets.slowdown + " times as slow ";
      return {
        network: presets.networks[network.value], rate: presets.devices[device.value].rate, server: presets.server,
        slowdown: presets.slowdown, stragglers: slider.value / 100,
      };
    };
  }

  function timed(values, at) {
    return values.filter(function (value) { return value.rounds.length; }).map(function (value) {
      var time = minutes(value.rounds, at), text = Number(time.toPrecision(3)) + " min";
      return Object.assign({}, value, { time: time, sizes: { time: text } });
    });
  }

  // A layer without values would get a separate scale, or none.
  function withLayers(spec, values) {
    if (spec.layer) {
      spec.layer = spec.layer.filter(function (layer, place) {
        var name = spec.usermeta.layers[place];
        return values.some(function (value) { return value[name]; });
      });
    }
    return spec;
  }

  function prepare(figure) {
    var chart = site.data[figure.dataset.chart];
    var controls = figure.querySelector(".controls"), drawing = figure.querySelector(".drawing");
    var box = document.createElement("fieldset"), panel = null, measure = null, chosen = null, shown;
    if (chart.choices.panel && chart.choices.panel.length > 1) {
      panel = chooser(controls, "show", chart.choices.panel, function () { chosen = null; draw(); });
    }
    if (chart.measures) { measure = chooser(controls, "against", chart.measures, draw); }
    var where = chart.presets && deployment(controls, chart.presets, draw);
    box.className = "picker";
    controls.appendChild(box);
    if (site.seed !== null) { ofSeed(chart, "seed " + site.seed); }

    function draw() {
      var values = chart.values.filter(function (value) { return !panel || value.panel === panel.value; });
      var methods = values.map(function (value) { return value.method; }).filter(function (method, place, all) {
        return all.indexOf(method) === place;
      });
      chosen = chosen || methods.slice(0, MOST);
      picker(box, methods, chosen, draw);
      values = values.filter(function (value) { return chosen.indexOf(value.method) >= 0; });
      methods = methods.filter(function (method) { return chosen.indexOf(method) >= 0; });
      shown = panel ? panel.value : (values[0] || {}).panel;
      var isTime = measure && measure.value === "time", at = where && where(isTime);
      if (isTime) { values = timed(values, at); }
      var narrow = drawing.clientWidth < 620, isLog = (chart.exponential || []).indexOf(shown) >= 0;
      var spec = coloured(chart.spec, methods, chart.colours, narrow);
      if (measure && values.length) { values = against(values, measure.value, isLog, spec.height, spec); }
      withAxes(withLayers(spec, values), chart.titles && chart.titles[shown], measure && measure.selectedOptions[0].text, isLog);
      Object.assign(spec, {
        $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container",
        autosize: { type: "fit", contains: "padding" }, data: { values: values }, config: theme(),
      });
      if (narrow && !measure) { spec.height += 18 * methods.length; }
      vegaEmbed(drawing, spec, { actions: false, renderer: "svg" }).then(function (result) {
        result.view.addEventListener("click", function (event, item) {
          if (item && item.datum && item.datum.href) { window.location.href = item.datum.href; }
        });
        drawing.setAttribute("data-drawn", String(values.length));
      });
    }
    draw();
    dark.addEventListener("change", draw);
    var width = drawing.clientWidth;
    window.addEventListener("resize", function () {
      if ((drawing.clientWidth < 620) !== (width < 620)) { width = drawing.clientWidth; draw(); }
    });
  }

  // A cell's page: its seed first and in blue, the nearest seeds in grey.
  function ofSeed(chart, method) {
    function distance(value) { return Math.abs(Number(value.method.slice(5)) - site.seed); }
    chart.values.sort(function (one, other) { return distance(one) - distance(other) || one.round - other.round; });
    chart.colours = {};
    chart.colours[method] = "#0072B2";
  }

  if (typeof site !== "undefined" && typeof vegaEmbed !== "undefined") {
    site.minutes = minutes;
    document.querySelectorAll("figure.chart").forEach(prepare);
  }
})();
