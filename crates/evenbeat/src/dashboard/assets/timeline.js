/* Who runs when, past and future. Up and down walk the rows, right and left unfold and fold a group, and the readout says what is
   in a row. The jobs of a group come from the server when it is opened. */
(function (eb) {
  "use strict";
  var $ = eb.$, $$ = eb.$$, tlv = $("#tlv"), by = $("#tg");
  if (by) by.addEventListener("change", function () { by.form.submit(); });
  if (!tlv) return;

  function stops() { return $$("summary, .tlr .jid", tlv).filter(function (e) { return e.offsetParent; }); }
  function say(e) { var r = e.target.closest("[data-r]"); if (r) { var o = $("#tlo"); o.textContent = r.dataset.r; o.title = r.dataset.r; } }
  tlv.addEventListener("focusin", say); tlv.addEventListener("pointerover", say);
  tlv.addEventListener("keydown", function (e) {
    var all = stops(), at = all.indexOf(document.activeElement), group = document.activeElement.closest("details.tlg");
    if (at < 0 || e.altKey || e.ctrlKey || e.metaKey) return;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); var next = all[at + (e.key === "ArrowDown" ? 1 : -1)]; if (next) next.focus(); }
    if (e.key === "ArrowRight" && group) { e.preventDefault(); group.open = true; }
    if (e.key === "ArrowLeft" && group) { e.preventDefault(); group.open = false; $("summary", group).focus(); }
  });

  function address() {
    var u = new URL(location.href), open = $$("details.tlg[open]", tlv); u.searchParams.delete("open");
    open.forEach(function (d) { u.searchParams.append("open", d.dataset.group); });
    if (!open.length) u.searchParams.append("open", "");
    return u;
  }
  function fill(group, url) {
    fetch(url, { credentials: "same-origin" }).then(function (r) { return r.ok ? r.text() : null; }).then(function (text) {
      if (text === null) return;
      var page = new DOMParser().parseFromString(text, "text/html");
      var fresh = Array.prototype.find.call(page.querySelectorAll("details.tlg"), function (d) { return d.dataset.group === group.dataset.group; });
      if (!fresh) return;
      $$(":scope > :not(summary)", group).forEach(function (e) { e.remove(); });
      Array.prototype.slice.call(fresh.querySelectorAll(":scope > :not(summary)")).forEach(function (e) { group.appendChild(document.adoptNode(e)); });
    }).catch(function () {});
  }
  /* Browsers also report what is open from the start. */
  tlv.addEventListener("toggle", function (e) {
    var group = e.target; if (!group.matches || !group.matches("details.tlg") || group.open === group.hasAttribute("data-open")) return;
    group.toggleAttribute("data-open", group.open);
    var url = address(); history.replaceState(history.state, "", url);
    if (group.open && !$(".tlb", group)) fill(group, url);
  }, true);
})(window.evenbeat);
