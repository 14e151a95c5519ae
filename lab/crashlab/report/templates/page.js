(function () {
  "use strict";
  function button(text, action) {
    var made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", action);
    return made;
  }
  function selected(element) {
    var range = document.createRange();
    range.selectNodeContents(element);
    var selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return document.execCommand("copy");
  }
  var status = document.getElementById("status");
  document.querySelectorAll(".command").forEach(function (box) {
    var text = box.querySelector("pre");
    var made = button("Copy", function () {
      function said(ok) {
        made.textContent = ok ? "Copied" : "Select and copy by hand";
        status.textContent = made.textContent;
      }
      if (navigator.clipboard) {
        navigator.clipboard.writeText(text.textContent).then(
          function () { said(true); }, function () { said(selected(text)); });
      } else {
        said(selected(text));
      }
    });
    made.setAttribute("aria-label", "Copy " + text.textContent.slice(0, 80));
    box.appendChild(made);
  });
  document.querySelectorAll(".tools").forEach(function (box) {
    var all = box.parentElement.querySelectorAll("details.finding");
    function set(open) { return function () { all.forEach(function (each) { each.open = open; }); }; }
    box.append(button("Open all findings", set(true)), button("Close all", set(false)));
  });
  function show() {
    var target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (var each = target; each; each = each.parentElement) {
      if (each.tagName === "DETAILS") { each.open = true; }
    }
    if (target && target.tagName === "DETAILS") {
      target.scrollIntoView();
      target.querySelector("summary").focus({ preventScroll: true });
    }
  }
  addEventListener("hashchange", show);
  show();
})();
