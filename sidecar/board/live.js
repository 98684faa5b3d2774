// Renews the page each second, and keeps what the viewer has opened. Without it the page is as it was when it was loaded.
"use strict";
(() => {
	const main = document.querySelector("main");
	const said = document.getElementById("live");
	let source;

	function renew(event) {
		// Nothing is taken away from under a viewer's hands: not while a button has the focus, or text is selected.
		const at = document.activeElement;
		if (main.contains(at) && at.tagName !== "SUMMARY" || !document.getSelection().isCollapsed) {
			return;
		}
		const open = new Set([...main.querySelectorAll("details[open]")].map((d) => d.id));
		const focus = main.contains(at) ? at.parentElement.id : "";
		main.innerHTML = event.data;
		for (const d of main.querySelectorAll("details")) {
			d.open = open.has(d.id);
			if (focus && d.id === focus) {
				d.querySelector("summary").focus();
			}
		}
		said.textContent = "Live: renewed each second.";
	}

	function begin() {
		if (source || document.hidden) {
			return;
		}
		source = new EventSource("live" + location.search);
		source.onmessage = renew;
		source.onerror = () => {
			said.textContent = "weir does not answer: this is as of " + new Date().toLocaleTimeString() + ".";
		};
	}

	function end() {
		if (source) {
			source.close();
			source = undefined;
		}
	}

	document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()));
	begin();
})();
