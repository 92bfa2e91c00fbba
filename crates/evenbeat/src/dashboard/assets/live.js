/* Live pages. One stream of changes per browser, shared by its tabs; when something that a page shows has changed, the page is
   loaded again and new values are put where the old ones were.

   Markup: an element with an id and data-l is replaced as a whole when its content differs. Children of an element with an id and
   data-rows are matched by data-key: values change in place, rows never move, appear or vanish under the pointer. */
(function (eb) {
  "use strict";
  var $ = eb.$, $$ = eb.$$, body = document.body;
  var kinds = (body.dataset.live || "").split(/\s+/).filter(Boolean), job = body.dataset.liveJob || "";
  var lb = $(".live"), offline = $("#offline"), moved = $("#moved"), heard = Date.now(), dirty = false, busy = false, next = 0, cost = 0;
  eb.frozen = false;
  if (!kinds.length || !window.EventSource) return;
  if (lb) lb.hidden = false;

  eb.toggleLive = function () {
    eb.frozen = !eb.frozen;
    if (lb) { lb.setAttribute("aria-pressed", !eb.frozen); $(".lv", lb).textContent = eb.frozen ? "Frozen" : "Live"; }
    if (!eb.frozen) soon();
  };
  if (lb) lb.addEventListener("click", eb.toggleLive);

  /* ---- the stream: one tab holds it and tells the others, because a browser has six connections per server on HTTP/1.1 */
  var channel = window.BroadcastChannel ? new BroadcastChannel("evenbeat-live") : null;
  function take(m) {
    heard = Date.now(); if (offline) offline.hidden = true;
    if (m.tick) { eb.setNow(m.tick); return; }
    var all = m.kinds.indexOf("all") >= 0, wanted = all || m.kinds.some(function (k) { return kinds.indexOf(k) >= 0; });
    if (!wanted || job && m.jobs && m.jobs.indexOf(job) < 0) return;
    soon();
  }
  function tell(m) { take(m); if (channel) channel.postMessage(m); }
  if (channel) channel.onmessage = function (e) { take(e.data); };
  var source = null;
  function connect() {
    if (source) return;
    source = new EventSource("/live");
    source.addEventListener("tick", function (e) { tell({ tick: +e.data }); });
    source.addEventListener("change", function (e) { tell(JSON.parse(e.data)); });
    /* What happened while the stream was away is not in it. */
    var opened = false;
    source.onopen = function () { if (opened) tell({ kinds: ["all"] }); opened = true; };
  }
  function disconnect() { if (source) { source.close(); source = null; } }
  if (channel && navigator.locks) {
    /* Only tabs in sight ask for the lock; whoever has it gives it back when its tab is hidden. */
    var release = null, queued = false;
    var lead = function () {
      if (document.hidden || queued || release) return;
      queued = true;
      navigator.locks.request("evenbeat-live", function () {
        queued = false; if (document.hidden) return null;
        connect(); return new Promise(function (done) { release = done; });
      });
    };
    document.addEventListener("visibilitychange", function () {
      if (document.hidden) { disconnect(); if (release) { release(); release = null; } } else { heard = Date.now(); lead(); soon(); }
    });
    lead();
  } else {
    document.addEventListener("visibilitychange", function () { if (document.hidden) disconnect(); else { heard = Date.now(); connect(); soon(); } });
    if (!document.hidden) connect();
  }
  setInterval(function () {
    if (document.hidden || eb.frozen) return;
    if (Date.now() - heard > 15000 && offline && offline.hidden) { $(".at", offline).textContent = eb.clockText(heard + (eb.now() - Date.now())); offline.hidden = false; }
    if (dirty && Date.now() >= next) load();
  }, 250);
  if (offline) $("button", offline).addEventListener("click", function () { location.reload(); });

  /* ---- loading again: not while someone reads a dialog, selects text or types into what would change */
  function soon() { dirty = true; }
  function mayChange() {
    if (document.hidden || eb.frozen || $("dialog[open]")) return false;
    var s = document.getSelection(); return !s || s.isCollapsed || !$("#main").contains(s.anchorNode);
  }
  eb.reload = function (whole) { return load(whole); };
  function load(whole) {
    if (busy || !whole && !mayChange()) return Promise.resolve();
    busy = true; dirty = false; var began = performance.now();
    return fetch(location.href, { credentials: "same-origin", headers: { "X-Evenbeat-Live": "1" } }).then(function (r) {
      if (r.redirected && new URL(r.url).pathname === "/login") { location.href = "/login"; return null; }
      return r.ok ? r.text() : null;
    }).then(function (text) {
      /* A page that is slow to make is asked for less often. */
      cost = performance.now() - began; next = Date.now() + Math.max(1000, cost * 10); busy = false;
      if (text === null) return;
      if (!whole && !mayChange()) { dirty = true; return; }
      patch(new DOMParser().parseFromString(text, "text/html"), whole);
    }).catch(function () { busy = false; next = Date.now() + 5000; dirty = true; });
  }
  function patch(fresh, whole) {
    var away = 0, title = fresh.querySelector("title"); if (title && document.title !== title.textContent) document.title = title.textContent;
    if (fresh.body.dataset.now) eb.setNow(Date.parse(fresh.body.dataset.now));
    $$("[data-l]").forEach(function (e) {
      if (!e.id || !e.isConnected) return; var n = fresh.getElementById(e.id); if (n) put(e, n); else if (e.hasAttribute("data-l-optional")) e.replaceChildren();
    });
    $$("[data-rows]").forEach(function (e) { var n = e.id && fresh.getElementById(e.id); if (n) away += rows(e, n, whole); });
    if (moved) { if (away) $(".n", moved).textContent = away === 1 ? "1 row would change place" : away + " rows would change place"; moved.hidden = !away; }
    document.dispatchEvent(new CustomEvent("evenbeat:patched"));
  }
  function attributes(e, n) {
    Array.prototype.slice.call(e.attributes).forEach(function (a) { if (!n.hasAttribute(a.name) && a.name !== "aria-selected" && a.name !== "open") e.removeAttribute(a.name); });
    Array.prototype.slice.call(n.attributes).forEach(function (a) { if (e.getAttribute(a.name) !== a.value && a.name !== "open") e.setAttribute(a.name, a.value); });
  }
  function put(e, n) {
    if (e.contains(document.activeElement) && document.activeElement.matches("input,select,textarea")) return;
    attributes(e, n); if (e.innerHTML === n.innerHTML) return;
    var focus = e.contains(document.activeElement) ? document.activeElement : null, open = $$("details[open]", e).map(function (d) { return d.id; });
    var at = focus && focus.getAttribute("href"), id = focus && focus.id;
    e.innerHTML = n.innerHTML;
    open.forEach(function (d) { var o = d && document.getElementById(d); if (o) o.open = true; });
    if (focus) { var f = id && document.getElementById(id) || at && $$("a", e).find(function (a) { return a.getAttribute("href") === at; }); if (f) f.focus({ preventScroll: true }); }
    $$(".slots", e).forEach(eb.slots);
  }
  /* Changes values in place; counts the rows that would be elsewhere. */
  function rows(e, n, whole) {
    var old = {}, ticked = {}; $$("[data-key]", e).forEach(function (r) { old[r.dataset.key] = r; var c = $(".cb", r); if (c && c.checked) ticked[r.dataset.key] = 1; });
    var fresh = $$("[data-key]", n), before = Object.keys(old).length, hover = e.matches(":hover") || e.contains(document.activeElement) || Object.keys(ticked).length;
    var same = fresh.length === before && fresh.every(function (r, i) { return $$("[data-key]", e)[i].dataset.key === r.dataset.key; });
    if (whole || !same && !hover) { e.innerHTML = n.innerHTML; $$("[data-key]", e).forEach(function (r) { var c = $(".cb", r); if (c && ticked[r.dataset.key]) c.checked = true; }); document.dispatchEvent(new CustomEvent("evenbeat:rows")); return 0; }
    var seen = {}, away = 0;
    fresh.forEach(function (r, i) {
      var o = old[r.dataset.key]; seen[r.dataset.key] = 1; if (!o) { away++; return; }
      if ($$("[data-key]", e)[i] !== o) away++;
      o.classList.remove("gone"); var c = $(".cb", o), on = c && c.checked, s = o.getAttribute("aria-selected");
      put(o, r); if (on) { c = $(".cb", o); if (c) c.checked = true; o.classList.add("on"); } if (s) o.setAttribute("aria-selected", s);
    });
    Object.keys(old).forEach(function (k) { if (!seen[k]) { old[k].classList.add("gone"); away++; } });
    return same ? 0 : away;
  }
  if (moved) $("button", moved).addEventListener("click", function () { moved.hidden = true; load(true); });
})(window.evenbeat);
