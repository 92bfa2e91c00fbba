/* Questions before a change. A link with data-ask leads to a page that asks; here its form is shown in a dialog instead. */
(function (eb) {
  "use strict";
  var $ = eb.$;
  eb.ask = function (href, from) {
    return fetch(href, { credentials: "same-origin" }).then(function (r) { return r.ok ? r.text() : ""; }).then(function (text) {
      var form = text && new DOMParser().parseFromString(text, "text/html").querySelector(".qst");
      if (!form) { location.href = href; return; }
      var d = $("#ask");
      if (!d) {
        d = document.createElement("dialog"); d.id = "ask"; d.className = "dlg small"; document.body.appendChild(d);
        d.addEventListener("close", function () { if (d.from && d.from.focus) d.from.focus(); });
      }
      d.replaceChildren(document.importNode(form, true)); d.from = from;
      var h = $("h1", d); if (h) { h.id = "ask-h"; d.setAttribute("aria-labelledby", "ask-h"); }
      if (!d.open) d.showModal();
      var safe = $("[data-close]", d), first = $("select, input:not([type=hidden])", d);
      (first && h ? h : safe || d).focus();
      document.dispatchEvent(new CustomEvent("evenbeat:asked"));
    }).catch(function () { location.href = href; });
  };
  document.addEventListener("click", function (e) {
    var a = e.target.closest && e.target.closest("a[data-ask]");
    if (!a || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
    e.preventDefault(); eb.ask(a.href, a);
  });
})(window.evenbeat);
