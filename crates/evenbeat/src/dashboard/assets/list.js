/* Lists with filters: the address is the only state. Typing replaces the history entry, everything else is a link. */
(function (eb) {
  "use strict";
  var $ = eb.$, q = $("#q"), wait = 0;
  if (!q || !q.form) return;
  q.addEventListener("input", function () {
    clearTimeout(wait);
    wait = setTimeout(function () {
      var u = new URL(location.href); if (q.value.trim()) u.searchParams.set("q", q.value.trim()); else u.searchParams.delete("q");
      u.searchParams.delete("page"); u.searchParams.delete("after"); history.replaceState(null, "", u);
      if (eb.reload) eb.reload(true); else location.replace(u);
    }, 250);
  });
})(window.evenbeat);
