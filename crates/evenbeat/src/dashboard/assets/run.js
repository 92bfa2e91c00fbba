/* The page of a run: its log. Lines are real text; this searches and filters them, loads older parts by their bytes, and while
   the run goes on asks once a second for what came since. A reader who scrolls up is never moved. */
(function (eb) {
  "use strict";
  var $ = eb.$, $$ = eb.$$, LINES_MAX = 20000;
  var box = null, log = null, hits = [], at = -1, fresh = 0, paused = false, asking = false, over = false;

  function begin() {
    var b = $("#log"); if (!b || b === box && b.contains(log) || !$(".log", b)) return;
    box = b; log = $(".log", b); hits = []; at = -1; fresh = 0; paused = false; over = !b.dataset.live;
    log.addEventListener("scroll", function () {
      var left = log.scrollHeight - log.scrollTop - log.clientHeight;
      if (!paused && !over && left > 60) pause(true); else if (paused && left < 4 && !held) pause(false);
    });
    $(".log-n", b) && $(".log-n", b).addEventListener("click", function () { held = false; pause(false); });
    if (!location.hash) end();
  }
  var held = false;
  function end() { log.scrollTop = log.scrollHeight; }
  function pause(on) {
    paused = on; var p = $("#l-pause"); if (p) { p.setAttribute("aria-pressed", on); p.textContent = on ? "Resume" : "Pause"; }
    if (!on) { fresh = 0; end(); } show();
  }
  function show() {
    var n = $(".log-n", box); if (!n) return; n.hidden = !paused || !fresh;
    n.textContent = (fresh === 1 ? "1 new line" : fresh + " new lines") + ", go to the end";
  }

  /* ---- search: marks lines, Enter and Shift-Enter step through them */
  function word() { var q = $("#lq"); return q ? q.value.trim().toLowerCase() : ""; }
  function mark(l, q) { var m = q && l.textContent.toLowerCase().indexOf(q) >= 0; l.classList.toggle("m", !!m); l.classList.remove("cur"); return m; }
  function onlyErrors(l) { var c = $("#l-err"); l.hidden = !!(c && c.checked && !l.classList.contains("e")); }
  function number(n) { return n.toLocaleString("en"); }
  function search() {
    var q = word(), all = $$(".l", log); at = -1;
    hits = all.filter(function (l) { return mark(l, q) && !l.hidden; });
    $(".log-c", box).textContent = !q ? "" : hits.length ? number(hits.length) + " of " + number(all.length) + " loaded lines" : "not in the " + number(all.length) + " loaded lines";
  }
  function step(by) {
    hits = hits.filter(function (l) { return l.isConnected && !l.hidden; }); if (!hits.length) return;
    if (hits[at]) hits[at].classList.remove("cur");
    at = at < 0 ? (by > 0 ? 0 : hits.length - 1) : (at + by + hits.length) % hits.length;
    var l = hits[at]; l.classList.add("cur"); if (!over) { held = true; pause(true); }
    log.scrollTop = l.offsetTop - log.clientHeight / 2; $(".log-c", box).textContent = number(at + 1) + " of " + number(hits.length);
  }
  document.addEventListener("input", function (e) { if (e.target.id === "lq") search(); });
  document.addEventListener("keydown", function (e) {
    if (e.target.id !== "lq") return;
    if (e.key === "Enter") { e.preventDefault(); step(e.shiftKey ? -1 : 1); }
    if (e.key === "Escape") { e.target.value = ""; search(); }
  });
  document.addEventListener("change", function (e) {
    if (e.target.id === "l-wrap") log.classList.toggle("wrap", e.target.checked);
    if (e.target.id === "l-err") { $$(".l", log).forEach(onlyErrors); search(); if (!paused) end(); }
  });
  document.addEventListener("click", function (e) {
    if (e.target.id === "l-pause") { held = !paused; pause(!paused); }
    if (e.target.id === "log-older") older(e.target);
  });

  /* ---- parts */
  function get(query) {
    return fetch(box.dataset.path + "?" + query, { credentials: "same-origin", headers: { Accept: "application/json" } })
      .then(function (r) { if (!r.ok) throw new Error(r.status); return r.json(); });
  }
  function lines(html) { var t = document.createElement("template"); t.innerHTML = html; return t.content; }
  function numberOf(no) { return no === null || no === undefined ? "" : "&no=" + no; }
  function set(name, value) { if (value === null || value === undefined) delete box.dataset[name]; else box.dataset[name] = value; }
  function older(button) {
    button.disabled = true;
    get("before=" + box.dataset.first + numberOf(box.dataset.firstNo)).then(function (part) {
      var was = log.scrollHeight, add = lines(part.html), q = word(); if (!over) { held = true; pause(true); }
      $$(".l", add).forEach(function (l) { onlyErrors(l); if (q) mark(l, q); });
      $("#log-first").after(add); log.scrollTop += log.scrollHeight - was;
      set("first", part.first); set("firstNo", part.first_no); $("#log-first").innerHTML = part.first_line; if (q) search();
    }).catch(function () { button.disabled = false; eb.toast("Not loaded", "The part before could not be read. Try again.", true); });
  }
  function newer() {
    if (!box || !box.isConnected || over || asking || document.hidden || eb.frozen) return;
    asking = true; var of = box;
    get("after=" + box.dataset.next + numberOf(box.dataset.nextNo)).then(function (part) {
      asking = false; if (of !== box) return;
      var open = $(".l.o", log), add = lines(part.html), q = word(), n = add.querySelectorAll(".l").length;
      if (part.replaces) {
        $$(".l", log).forEach(function (l) { l.remove(); }); open = null;
        set("first", part.first); set("firstNo", part.first_no); $("#log-first").innerHTML = part.first_line;
      }
      if (open && n) { var one = add.querySelector(".l"); if (one.outerHTML === open.outerHTML && n === 1) n = 0; else { open.remove(); n--; } }
      if (n || add.querySelector(".l") && open && !open.isConnected) {
        $$(".l", add).forEach(function (l) { onlyErrors(l); if (q && mark(l, q)) hits.push(l); });
        if (!$(".l", log) && box.dataset.first === "0") $("#log-first").textContent = "";
        log.appendChild(add); if (paused) { fresh += n; show(); } else { trim(); end(); }
      }
      set("next", part.next); set("nextNo", part.next_no); $("#log-sub").textContent = part.subtitle;
      if (part.is_over) { over = true; set("live", null); var p = $("#l-pause"); if (p) p.remove(); if (!fresh) { var b = $(".log-n", box); if (b) b.hidden = true; } }
    }).catch(function () { asking = false; });
  }
  /* A page that is left open must not grow for ever. What goes can be loaded again. */
  function trim() {
    var all = log.getElementsByClassName("l"), n = all.length - LINES_MAX; if (n <= 0) return;
    for (var i = 0; i < n; i++) all[0].remove();
    $("#log-first").textContent = "Earlier lines are not shown any more; load the page again to see them";
  }
  begin();
  document.addEventListener("evenbeat:patched", begin);
  setInterval(newer, 1000);
})(window.evenbeat);
