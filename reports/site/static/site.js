(function () {
  "use strict";

  // ---- tables: a click on a header sorts, numbers by data-sort ----------------------------------------------
  function keyOf(row, place) {
    var cell = row.cells[place];
    if (!cell) { return null; }
    if (cell.hasAttribute("data-sort")) {
      var text = cell.getAttribute("data-sort");
      return text === "" ? null : Number(text);
    }
    return cell.textContent.trim().toLowerCase();
  }

  function compare(own, other) {
    if (own === null || other === null) { return 0; }
    if (typeof own === "number" && typeof other === "number") { return own - other; }
    return String(own).localeCompare(String(other), "en", { numeric: true });
  }

  function sortBy(table, place, header) {
    var down = header.getAttribute("aria-sort") === "descending";
    var body = table.tBodies[0];
    var rows = Array.prototype.slice.call(body.rows);
    var isNumber = rows.some(function (row) { return typeof keyOf(row, place) === "number"; });
    var sign = header.hasAttribute("aria-sort") ? (down ? 1 : -1) : (isNumber ? -1 : 1);
    rows.map(function (row, number) { return [keyOf(row, place), number, row]; })
      .sort(function (own, other) {
        if ((own[0] === null) !== (other[0] === null)) { return own[0] === null ? 1 : -1; }  // what is open stays below
        return sign * compare(own[0], other[0]) || own[1] - other[1];
      })
      .forEach(function (entry) { body.appendChild(entry[2]); });
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell) { cell.removeAttribute("aria-sort"); });
    header.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
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

  // ---- filters: what does not have all chosen words is hidden ----------------------------------------------
  document.querySelectorAll(".filtered").forEach(function (part) {
    var selects = Array.prototype.slice.call(part.querySelectorAll("select[data-filter]"));
    function show() {
      part.querySelectorAll("[data-" + selects[0].dataset.filter.replace(/ /g, "-") + "]").forEach(function (entry) {
        entry.hidden = selects.some(function (select) {
          var name = "data-" + select.dataset.filter.replace(/ /g, "-");
          return select.value !== "" && entry.getAttribute(name) !== select.value;
        });
      });
    }
    selects.forEach(function (select) { select.addEventListener("change", show); });
  });

  // ---- charts ------------------------------------------------------------------------------------------------
  var dark = window.matchMedia("(prefers-color-scheme: dark)");

  function theme() {
    var ink = dark.matches ? "#d8dee6" : "#333a42", faint = dark.matches ? "#39414b" : "#e3e6ea";
    return {
      background: "transparent", font: "system-ui, sans-serif", view: { stroke: null },
      axis: { labelColor: ink, titleColor: ink, gridColor: faint, domainColor: ink, tickColor: faint,
              labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" },
      legend: { labelColor: ink, titleColor: ink, labelFontSize: 12, symbolStrokeWidth: 2 },
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

  function papersOf(scale, values) {
    var kept = scale.domain.filter(function (paper) {
      return values.some(function (value) { return value.paper === paper && !value.silent; });
    });
    return { domain: kept, range: kept.map(function (paper) { return scale.range[scale.domain.indexOf(paper)]; }) };
  }

  function coloured(spec, methods, colours, narrow, values) {
    spec = JSON.parse(JSON.stringify(spec));
    (spec.layer || [spec]).forEach(function (layer) {
      var channel = layer.encoding.color;
      if (channel && channel.field === "method") {
        channel.scale = { domain: methods, range: methods.map(function (method) { return colours[method]; }) };
        channel.legend.orient = narrow ? "bottom" : "right";
      }
      var shape = layer.encoding.shape;
      if (shape) {
        shape.scale = papersOf(shape.scale, values);
        shape.legend = { orient: narrow ? "bottom" : "right", columns: narrow ? 2 : 1 };
      }
    });
    return spec;
  }

  function withAxes(spec, y, x, exponential) {
    (spec.layer || [spec]).forEach(function (layer) {
      if (y && layer.encoding.y) { layer.encoding.y.title = y; }
      if (x && layer.encoding.x) { layer.encoding.x.title = x; }
      if (exponential && layer.encoding.y) {
        layer.encoding.y.scale = Object.assign({}, layer.encoding.y.scale, { type: "log", nice: false });
        layer.encoding.y.axis = { tickCount: 6 };
      }
    });
    return spec;
  }

  // What does not send anything has no place on a logarithm's axis: a line across.
  function against(value, by) {
    var sent = value[by] > 0;
    return Object.assign({}, value, {
      x: value[by], bytes: value.sizes[by], front: sent && value.best, spread: sent && value.low !== null,
      printed: sent && value.reported, ours: sent && !value.reported, silent: !sent,
    });
  }

  // A layer without values would be drawn with a scale of its own, or none.
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
    var name = figure.dataset.chart, found = site.data[name];
    var controls = figure.querySelector(".controls"), drawing = figure.querySelector(".drawing");
    var selects = {}, measure = null;
    if (found.seeds) { found = ofSeeds(found); }
    Object.keys(found.choices).forEach(function (field) {
      if (found.choices[field].length > 1) {
        selects[field] = chooser(controls, field === "panel" ? "show" : field, found.choices[field], draw);
      }
    });
    if (found.measures) { measure = chooser(controls, "against", found.measures, draw); }

    function draw() {
      var values = found.values.filter(function (value) {
        return Object.keys(selects).every(function (field) { return value[field] === selects[field].value; });
      });
      var narrow = drawing.clientWidth < 620, by = measure ? measure.value : null;
      values = values.map(function (value) { return by ? against(value, by) : value; });
      var methods = values.map(function (value) { return value.method; }).filter(function (method, place, all) {
        return method !== undefined && all.indexOf(method) === place;
      });
      var spec = withLayers(coloured(found.spec, methods, found.colours, narrow, values), values);
      var panel = selects.panel ? selects.panel.value : (values[0] || {}).panel;
      withAxes(
        spec, found.titles && found.titles[panel], by && measure.selectedOptions[0].text,
        (found.exponential || []).indexOf(panel) >= 0
      );
      Object.assign(spec, {
        $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container",
        autosize: { type: "fit", contains: "padding" }, data: { values: values }, config: theme(),
      });
      spec.height = narrow ? spec.height + 18 * methods.length : Math.max(spec.height, 16 * methods.length + 130);
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

  function ofSeeds(found) {
    var values = [];
    var nearest = found.seeds.slice().sort(function (own, other) {
      return Math.abs(own.seed - site.own) - Math.abs(other.seed - site.own);
    }).slice(0, 25);
    nearest.forEach(function (run) {
      Object.keys(run.scores).forEach(function (score) {
        run.scores[score].forEach(function (value, place) {
          if (value !== null) {
            var own = run.seed === site.own;
            values.push({ panel: score, seed: run.seed, round: place + 1, value: value, own: own, other: !own });
          }
        });
      });
    });
    return { spec: found.spec, values: values, choices: found.choices, titles: found.titles, colours: {} };
  }

  if (typeof site !== "undefined" && typeof vegaEmbed !== "undefined") {
    document.querySelectorAll("figure.chart").forEach(prepare);
  }
})();
