/* The preview of a rebalance: modal, with its address only while it is open. */
(function (eb) {
  "use strict";
  var $ = eb.$, ask = $("#rb-ask"), d = document.getElementById("rebal");
  function plain() { if (/[?&](plan|rebalance)=/.test(location.search)) history.replaceState(null, "", "/schedule"); }
  if (ask) { plain(); ask.requestSubmit(); }
  if (!d) return;
  /* It is already there for those without scripts; a modal one keeps the focus inside. */
  d.removeAttribute("open"); eb.open("rebal", $("#rb"));
  var stays = document.getElementById("sk"); if (stays && document.getElementById("mv")) stays.hidden = true;
  d.addEventListener("close", plain);
})(window.evenbeat);
