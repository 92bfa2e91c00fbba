/* The list of jobs: ticked rows and what is done to them. The same form works without scripts. */
(function (eb) {
  "use strict";
  var $ = eb.$, $$ = eb.$$, list = $("#list"), bar = $("#bulk"), every = $("#cb-all"), dialog = $("#bulk-dlg");
  /* Fields that say nothing stay out of the address. */
  var filter = $(".flt");
  if (filter) {
    var fields = function () { return $$("input,select", filter); };
    filter.addEventListener("submit", function () { fields().forEach(function (f) { f.disabled = !f.value.trim(); }); });
    window.addEventListener("pageshow", function () { fields().forEach(function (f) { f.disabled = false; }); });
  }
  /* The first job changes the whole page. */
  if ($("#no-jobs")) document.addEventListener("evenbeat:patched", function () { location.reload(); });
  if (!list || !bar) return;

  function boxes() { return $$("#rows .cb"); }
  function all() { return $(".bk-all input", bar); }
  function show() {
    var on = boxes().filter(function (c) { return c.checked; }).length, n = boxes().length, a = all();
    boxes().forEach(function (c) { var r = c.closest("tr"); if (r) r.classList.toggle("on", c.checked); });
    if (!on && a) a.checked = false;
    bar.classList.toggle("on", on > 0);
    $(".bk-n", bar).textContent = a && a.checked ? "All matching selected" : on + " selected";
    if (every) { every.checked = on > 0 && on === n; every.indeterminate = on > 0 && on < n; }
  }
  function clear() { boxes().forEach(function (c) { c.checked = false; }); show(); }
  list.addEventListener("change", function (e) {
    if (e.target === every) boxes().forEach(function (c) { c.checked = every.checked; });
    show();
  });
  $(".bk-x", bar).addEventListener("click", clear);
  document.addEventListener("evenbeat:patched", show);
  document.addEventListener("evenbeat:rows", show);
  show();

  /* The question comes from the server; it is shown over the list instead of in its place. */
  document.addEventListener("submit", function (e) {
    if (e.target !== list || !window.fetch || !dialog || !dialog.showModal) return;
    e.preventDefault(); e.stopPropagation();
    var data = new URLSearchParams(new FormData(list)), verb = e.submitter;
    if (verb && verb.name) data.append(verb.name, verb.value);
    fetch(list.action, { method: "POST", body: data, credentials: "same-origin", redirect: "manual" }).then(function (r) {
      if (r.type === "opaqueredirect") { location.reload(); return null; }
      return r.text();
    }).then(function (text) {
      if (text === null) return;
      var form = new DOMParser().parseFromString(text, "text/html").getElementById("confirm");
      if (!form) { location.reload(); return; }
      dialog.replaceChildren(form); eb.open("bulk-dlg", verb);
      var first = $("[data-close]", dialog); if (first) first.focus();
    }).catch(function () { eb.toast("Not sent", "The server does not answer. Nothing was done.", true); });
  }, true);
})(window.evenbeat);
