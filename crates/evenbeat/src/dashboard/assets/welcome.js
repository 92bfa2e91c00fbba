/* The button that takes a crontab over carries the number of ticked lines. */
(function (eb) {
  "use strict";
  var take = document.getElementById("take"); if (!take) return;
  var boxes = eb.$$("input[name=line]"), all = +(take.textContent.match(/[\d,]+/) || ["0"])[0].replace(/,/g, ""), rest = all - boxes.length;
  function tell() {
    var n = rest + boxes.filter(function (b) { return b.checked; }).length;
    take.textContent = "Take over " + n.toLocaleString("en-US") + (n === 1 ? " job" : " jobs"); take.disabled = n === 0;
  }
  boxes.forEach(function (b) { b.addEventListener("change", tell); }); tell();
})(window.evenbeat);
