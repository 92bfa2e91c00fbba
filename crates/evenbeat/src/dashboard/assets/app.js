/* What every page does: theme, zone, clock, distances from now, messages, dialogs, the "More" menu.
   Plain JavaScript without dependencies and without inline handlers. Everything here is an enhancement: each link and form
   also works as a round trip to the server. */
window.evenbeat = (function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");
  var eb = {};
  eb.$ = function (s, r) { return (r || document).querySelector(s); };
  eb.$$ = function (s, r) { return Array.prototype.slice.call((r || document).querySelectorAll(s)); };
  var $ = eb.$, $$ = eb.$$;

  function cookie(name, value) {
    document.cookie = name + "=" + value + "; Max-Age=31536000; Path=/; SameSite=Strict" + (location.protocol === "https:" ? "; Secure" : "");
  }

  /* ---- theme: system, light, dark; a cookie, so that the first byte of the next page is already right */
  var theme = root.getAttribute("data-theme") || "system";
  var tb = $(".theme");
  function label() { if (tb) tb.setAttribute("aria-label", "Theme: " + { system: "follow system", light: "light", dark: "dark" }[theme]); }
  eb.cycleTheme = function () {
    theme = { system: "light", light: "dark", dark: "system" }[theme];
    if (theme === "system") root.removeAttribute("data-theme"); else root.setAttribute("data-theme", theme);
    cookie("evenbeat_theme", theme); label();
  };
  if (tb) { tb.addEventListener("click", eb.cycleTheme); label(); }

  /* ---- zone: the server renders times in the zone of the browser, once it knows it */
  var zone = "";
  try { zone = Intl.DateTimeFormat().resolvedOptions().timeZone || ""; } catch (e) { /* stays UTC */ }
  if (zone && /^[A-Za-z0-9_+\-\/]+$/.test(zone) && document.cookie.indexOf("evenbeat_zone=" + zone) < 0) {
    cookie("evenbeat_zone", zone);
    if (document.body.dataset.zone && document.body.dataset.zone !== zone && document.cookie.indexOf("evenbeat_zone=" + zone) >= 0) location.replace(location.href);
  }

  /* ---- time: that of the server, in the zone of the page */
  var offset = 0;
  eb.setNow = function (ms) { offset = ms - Date.now(); };
  eb.now = function () { return Date.now() + offset; };
  if (document.body.dataset.now) eb.setNow(Date.parse(document.body.dataset.now));
  var clock = $("#clock"), format = null;
  try { format = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false, timeZone: document.body.dataset.zone || "UTC" }); } catch (e) { /* the clock stands still */ }
  eb.clockText = function (ms) { return format ? format.format(new Date(ms)) : new Date(ms).toISOString().slice(11, 19) + " UTC"; };

  /* A length in at most two units, as the server writes it. */
  eb.brief = function (ms) {
    var s = Math.floor(Math.abs(ms) / 1000), u = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
    for (var i = 0; i < u.length; i++) {
      if (s < u[i][1]) continue;
      var t = Math.floor(s / u[i][1]) + u[i][0], r = s % u[i][1], n = u[i + 1];
      return n && r >= n[1] ? t + " " + Math.floor(r / n[1]) + n[0] : t;
    }
    return "0s";
  };
  eb.distance = function (at, as) {
    var d = at - eb.now(), t = eb.brief(d);
    if (as === "in") return d < 1000 ? "now" : "in " + t;
    if (as === "ago") return t + " ago";
    if (as === "left") return d < 0 ? t + " late" : t + " left";
    return t;
  };
  function tick() {
    if (document.hidden || eb.frozen) return;
    if (clock) clock.textContent = eb.clockText(eb.now());
    $$("[data-rel]").forEach(function (e) {
      var t = eb.distance(Date.parse(e.dataset.rel), e.dataset.relAs);
      if (e.textContent !== t) e.textContent = t;
    });
  }
  setInterval(tick, 1000);

  /* ---- messages: go after ten seconds, not while looked at; failures stay */
  eb.keepToast = function (t) {
    var gone = function () { t.remove(); }, left = t.hasAttribute("data-stays") ? 0 : setTimeout(gone, 10000);
    var stay = function () { clearTimeout(left); };
    t.addEventListener("mouseenter", stay); t.addEventListener("focusin", stay);
    var b = $("button", t); if (b) b.addEventListener("click", gone);
  };
  $$(".toast").forEach(eb.keepToast);
  eb.toast = function (title, text, failed) {
    var t = document.createElement("div"), kind = failed ? "error" : "ok";
    t.className = "toast"; if (failed) t.setAttribute("data-stays", "");
    t.innerHTML = '<svg class="i i-' + kind + '" aria-hidden="true"><use href="#i-' + kind + '"/></svg><b></b><button class="btn bare ico" type="button" aria-label="Dismiss"><svg class="i" aria-hidden="true"><use href="#i-x"/></svg></button><p></p>';
    $("b", t).textContent = title; $("p", t).textContent = text || "";
    var all = $(".toasts"); while (all.children.length > 2) all.firstChild.remove();
    all.appendChild(t); eb.keepToast(t);
  };

  /* ---- dialogs: native <dialog>; focus goes back to what opened it. Without scripts, what opens one is a link to a page. */
  var opener = null;
  eb.open = function (id, from) {
    var d = document.getElementById(id); if (!d) return false;
    opener = from || document.activeElement; if (!d.open) d.showModal(); return true;
  };
  document.addEventListener("click", function (e) {
    var b = e.target.closest && e.target.closest("[data-open]");
    if (b && eb.open(b.dataset.open, b)) e.preventDefault();
    var c = e.target.closest && e.target.closest("[data-close]");
    if (c && c.closest("dialog")) { e.preventDefault(); c.closest("dialog").close(); }
    if (e.target.tagName === "DIALOG" && !e.target.hasAttribute("data-large")) e.target.close();
  });
  $$("dialog").forEach(function (d) {
    d.addEventListener("close", function () { if (opener && opener.focus) opener.focus(); opener = null; });
    if (d.hasAttribute("data-show")) eb.open(d.id, null);
  });

  /* ---- a form is sent once, however often its button is pressed; selects of filters send themselves */
  document.addEventListener("submit", function (e) {
    var f = e.target; if (f.method !== "post") return;
    if (f.dataset.sent) { e.preventDefault(); return; }
    f.dataset.sent = "1";
    setTimeout(function () { $$("button[type=submit]", f).forEach(function (b) { b.disabled = true; }); }, 0);
    setTimeout(function () { delete f.dataset.sent; $$("button[type=submit]", f).forEach(function (b) { b.disabled = false; }); }, 8000);
  });
  document.addEventListener("change", function (e) { if (e.target.matches && e.target.matches("select[data-submit]")) e.target.form.requestSubmit(); });

  /* ---- the "More" menu closes on Esc and on a click elsewhere */
  var more = $(".more");
  if (more) {
    document.addEventListener("click", function (e) { if (!more.contains(e.target)) more.open = false; });
    more.addEventListener("keydown", function (e) { if (e.key === "Escape") { more.open = false; $("summary", more).focus(); } });
  }

  /* ---- slot charts: hover or arrow keys write one sentence next to the chart */
  eb.slots = function (f) {
    var hits = $$(".hit", f), out = document.getElementById(f.dataset.readout), cur = -1;
    if (!out || !hits.length) return;
    function show(i) {
      if (cur >= 0) hits[cur].classList.remove("on");
      cur = Math.max(0, Math.min(hits.length - 1, i)); hits[cur].classList.add("on"); out.textContent = hits[cur].dataset.r;
    }
    hits.forEach(function (r, i) { r.addEventListener("pointerenter", function () { show(i); }); });
    f.addEventListener("keydown", function (e) {
      var d = { ArrowRight: 1, ArrowLeft: -1, PageDown: 4, PageUp: -4 }[e.key];
      if (d) { e.preventDefault(); show(cur < 0 ? 0 : cur + d); }
      if (e.key === "Home") { e.preventDefault(); show(0); }
      if (e.key === "End") { e.preventDefault(); show(hits.length - 1); }
    });
  };
  $$(".slots").forEach(eb.slots);

  /* ---- tabs inside a page that is already there */
  $$("[data-pane]").forEach(function (a) {
    a.addEventListener("click", function (e) {
      e.preventDefault();
      $$("[data-pane]").forEach(function (b) {
        var on = b === a; b.setAttribute("aria-selected", on); b.tabIndex = on ? 0 : -1;
        document.getElementById(b.dataset.pane).hidden = !on;
      });
    });
    a.addEventListener("keydown", function (e) {
      if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
      var all = $$("[data-pane]"), n = all[(all.indexOf(a) + (e.key === "ArrowLeft" ? all.length - 1 : 1)) % all.length]; n.focus(); n.click();
    });
  });
  return eb;
})();
