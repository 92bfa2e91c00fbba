/* One job: how fresh it is, why it waits, its history, its next runs, and what can be done to it. */
(function (eb) {
  "use strict";
  /* The editor says what a value of the chosen kind of schedule looks like. */
  var kind = eb.$("#kind"), note = eb.$("#when-n");
  if (kind && note) kind.addEventListener("change", function () {
    var hint = kind.selectedOptions[0].dataset.hint || "";
    note.textContent = hint.charAt(0).toUpperCase() + hint.slice(1).replace(/`/g, "") + ".";
  });
  /* Time passes also where nothing happens: the charts move on. */
  if (document.body.dataset.liveJob && eb.reload) setInterval(function () { if (!document.hidden && !eb.frozen) eb.reload(); }, 30000);
  /* The menu of a job closes on a click elsewhere. */
  document.addEventListener("click", function (e) { var m = eb.$(".jmore"); if (m && m.open && !m.contains(e.target)) m.open = false; });
})(window.evenbeat);
