/* Shortcuts and the command palette. Single keys are off while typing and in dialogs, and can be switched off (WCAG 2.1.4). */
(function (eb) {
  "use strict";
  var $ = eb.$, $$ = eb.$$;
  var pages = { f: "/", s: "/schedule", t: "/timeline", r: "/runs", n: "/nodes", a: "/alerts", w: "/whatif" };

  /* ---- palette: pages and actions by substring; jobs come from the server */
  var pal = $("#pal"), pin = pal && $(".pal-in", pal), cur = 0, wait = 0, asked = "";
  function options() { return $$(".po", pal).filter(function (a) { return !a.hidden && !a.closest("[hidden]"); }); }
  function select(i) {
    var o = options(); cur = o.length ? (i + o.length) % o.length : 0;
    $$(".po", pal).forEach(function (a) { a.setAttribute("aria-selected", a === o[cur]); });
    if (o[cur]) { pin.setAttribute("aria-activedescendant", o[cur].id); o[cur].scrollIntoView({ block: "nearest" }); } else pin.removeAttribute("aria-activedescendant");
  }
  function filter() {
    var w = pin.value.toLowerCase().split(/\s+/).filter(Boolean);
    $$(".po:not(.job)", pal).forEach(function (a) { var t = a.textContent.toLowerCase(); a.hidden = !w.every(function (x) { return t.indexOf(x) >= 0; }); });
    $$(".pg-g", pal).forEach(function (g) { if (g.id !== "pal-jobs") g.hidden = !$$(".po", g).some(function (a) { return !a.hidden; }); });
    $(".pal-n", pal).hidden = options().length > 0; select(0);
    clearTimeout(wait); wait = setTimeout(search, 120);
  }
  function search() {
    var q = pin.value.trim(); if (q === asked) return; asked = q;
    var box = $("#pal-jobs"), clear = function () { $$(".po", box).forEach(function (a) { a.remove(); }); box.hidden = true; };
    if (!q) { clear(); return select(0); }
    fetch("/search?q=" + encodeURIComponent(q), { credentials: "same-origin" }).then(function (r) { return r.ok ? r.json() : { jobs: [] }; }).then(function (found) {
      if (asked !== q) return;
      clear();
      found.jobs.forEach(function (j, i) {
        var a = document.createElement("a"); a.className = "po job"; a.id = "pal-j" + i; a.href = "/jobs/" + j.key; a.tabIndex = -1;
        a.setAttribute("role", "option"); a.innerHTML = '<svg class="i i-' + j.mark + '" aria-hidden="true"><use href="#i-' + j.mark + '"/></svg><span class="ell"></span><span class="mut ell"></span>';
        a.children[1].textContent = j.key; a.children[2].textContent = j.note; box.appendChild(a);
      });
      box.hidden = !found.jobs.length; $(".pal-n", pal).hidden = options().length > 0; select(0);
    }).catch(function () { /* the rest of the palette still works */ });
  }
  function palette() { pin.value = ""; asked = ""; filter(); eb.open("pal"); pin.focus(); }
  if (pal) {
    pin.addEventListener("input", filter);
    pin.addEventListener("keydown", function (e) {
      if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); select(cur + (e.key === "ArrowDown" ? 1 : -1)); }
      if (e.key === "Enter") { e.preventDefault(); var o = options()[cur]; if (o) o.click(); else location.href = "/?tab=all&q=" + encodeURIComponent(pin.value); }
    });
    pal.addEventListener("click", function (e) {
      var a = e.target.closest(".po"); if (a && a.getAttribute("href") === "#theme") { e.preventDefault(); eb.cycleTheme(); pal.close(); }
    });
    document.addEventListener("keydown", function (e) {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") { e.preventDefault(); if (pal.open) pal.close(); else palette(); }
    });
  }

  /* ---- single keys */
  var g = 0, on = true, box = $(".keys input");
  try { on = localStorage.getItem("evenbeat_keys") !== "off"; } catch (e) { /* on */ }
  if (box) {
    box.checked = on;
    box.addEventListener("change", function () { on = box.checked; try { localStorage.setItem("evenbeat_keys", on ? "on" : "off"); } catch (e) { /* for this page */ } });
  }
  function rows() { return $$("[data-rows] [data-key]").filter(function (r) { return r.offsetParent; }); }
  function move(d) {
    var all = rows(); if (!all.length) return;
    var i = all.findIndex(function (r) { return r.getAttribute("aria-selected") === "true"; });
    all.forEach(function (r) { r.removeAttribute("aria-selected"); });
    var r = all[Math.max(0, Math.min(all.length - 1, i + d))]; r.setAttribute("aria-selected", "true");
    var a = $("a", r); if (a) a.focus({ preventScroll: true }); r.scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("keydown", function (e) {
    if (e.ctrlKey || e.metaKey || e.altKey || !on || e.defaultPrevented) return;
    var t = e.target; if (t.matches && t.matches("input:not([type=checkbox]):not([type=radio]),select,textarea")) { if (e.key === "Escape") t.blur(); return; }
    if ($("dialog[open]")) return;
    if (g && Date.now() - g < 1200) { var to = pages[e.key]; g = 0; if (to) { location.href = to; return; } }
    if (e.key === "g") g = Date.now();
    else if (e.key === "/") { e.preventDefault(); var f = $("#q") || $("#gq"); if (f && f.offsetParent) f.focus(); else palette(); }
    else if (e.key === ":") { e.preventDefault(); palette(); }
    else if (e.key === "?") { e.preventDefault(); eb.open("keys"); }
    else if (e.key === "t") eb.cycleTheme();
    else if (e.key === "l" && eb.toggleLive) eb.toggleLive();
    else if (e.key === "j") move(1);
    else if (e.key === "k") move(-1);
    else if (e.key === "x") { var c = $("[aria-selected=true] .cb"); if (c) c.click(); }
    else if (e.key >= "1" && e.key <= "9") { var a = $$("[data-tab]")[+e.key - 1]; if (a) a.click(); }
    else if (e.key === "Escape") { var x = $("[data-clear]"); if (x) x.click(); }
  });
})(window.evenbeat);
