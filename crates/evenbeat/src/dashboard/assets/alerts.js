/* The form for a mute: its button repeats the end, and the field for a name goes when everything is muted. */
(function (eb) {
  "use strict";
  var $ = eb.$, $$ = eb.$$;
  function say() {
    $$(".qst form[action='/alerts/mute']").forEach(function (f) {
      var on = $("input[name=until]:checked", f), b = $("button[type=submit]", f), s = $("select[name=scope]", f), v = $("[data-value-of=scope]", f);
      if (on && b) b.textContent = on.dataset.verb;
      if (s && v) {
        v.hidden = s.value === "fleet";
        $("input", v).placeholder = { jobs: "prices-*", label: "team=shop", site: "shop.example", tenant: "acme" }[s.value] || "";
      }
    });
  }
  document.addEventListener("change", say); document.addEventListener("evenbeat:asked", say); say();
  var u = new URL(location.href);
  if (u.pathname === "/alerts" && u.searchParams.has("mute")) {
    var job = u.searchParams.get("job"); u.searchParams.delete("mute"); u.searchParams.delete("job");
    history.replaceState(null, "", u); eb.ask("/alerts/mute" + (job ? "?job=" + encodeURIComponent(job) : ""), null);
  }
})(window.evenbeat);
