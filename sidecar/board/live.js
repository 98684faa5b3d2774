// Updates the page each second, and opens rows in place. Without this script, the page shows the state when it was loaded, and
// rows open by a link.
"use strict";
(() => {
	const said = document.getElementById("live");
	const rows = document.getElementById("rows");
	const late = new Map(); // by id, the new content of elements that could not be updated yet
	let source, last = new Date();

	// An element is not updated while the viewer uses it: while a button in it has the focus, or text in it is selected.
	function held(element) {
		const at = document.activeElement;
		const selected = document.getSelection();
		return at !== element && element.contains(at) || !selected.isCollapsed && selected.containsNode(element, true);
	}

	const nameOf = (row) => row.id.slice(2);

	function addRow(id) {
		const row = document.createElement("div");
		row.className = "upstream";
		row.id = id;
		const a = row.appendChild(document.createElement("a"));
		a.className = "row";
		rows.append(row);
		close(row);
		return row;
	}

	function close(row) {
		row.querySelector(".inner")?.remove();
		const a = row.querySelector(".row");
		a.href = "?open=" + encodeURIComponent(nameOf(row)) + "#" + row.id;
		a.setAttribute("aria-expanded", "false");
	}

	function open(row) {
		const inner = row.appendChild(document.createElement("div"));
		inner.className = "inner";
		inner.textContent = "…";
		row.querySelector(".row").setAttribute("aria-expanded", "true");
		fill(row);
	}

	async function fill(row) {
		const inner = row.querySelector(".inner");
		if (inner.dataset.asked || held(inner)) {
			return;
		}
		inner.dataset.asked = "yes";
		try {
			const got = await fetch("row?name=" + encodeURIComponent(nameOf(row)));
			if (got.status === 404) {
				row.remove();
			} else if (got.ok) {
				const text = await got.text();
				if (!held(inner)) {
					inner.innerHTML = text;
				}
			}
		} catch {
			// The next event tries again. If weir does not answer, the event source reports it.
		}
		delete inner.dataset.asked;
	}

	function put(id, text) {
		let element = document.getElementById(id);
		if (id.startsWith("u-")) {
			element = (element || addRow(id)).querySelector(".row");
		}
		if (held(element)) {
			late.set(id, text);
		} else {
			element.innerHTML = text;
			late.delete(id);
		}
	}

	function order(ids) {
		const at = document.activeElement;
		const known = new Set(ids);
		for (const row of [...rows.children]) {
			if (!known.has(row.id) && !row.querySelector(".inner")) {
				row.remove();
			}
		}
		let next = rows.firstElementChild;
		for (const id of ids) {
			while (next && !known.has(next.id)) { // the row is open, so it stays
				next = next.nextElementSibling;
			}
			const row = document.getElementById(id) || addRow(id);
			if (row === next) {
				next = next.nextElementSibling;
			} else {
				rows.insertBefore(row, next);
			}
		}
		if (at !== document.activeElement) {
			at.focus({preventScroll: true});
		}
	}

	function renew(event) {
		const old = [...late];
		const put1 = (line) => {
			const tab = line.indexOf("\t");
			if (tab > 0) {
				put(line.slice(0, tab), line.slice(tab + 1));
			} else if (tab === 0) {
				order(line.slice(1).split(" ").filter(Boolean));
			}
		};
		for (const [id, text] of old) {
			put1(id + "\t" + text);
		}
		event.data.split("\n").forEach(put1);
		for (const inner of rows.querySelectorAll(".inner")) {
			fill(inner.parentElement);
		}
		last = new Date();
		said.textContent = "Live: updated every second.";
		said.className = "";
	}

	function begin() {
		if (source || document.hidden) {
			return;
		}
		source = new EventSource("live" + location.search);
		source.onmessage = renew;
		source.onerror = () => {
			const ends = source.readyState === EventSource.CLOSED;
			said.textContent = (ends ? "weir ended the live updates. Reload this page. " : "weir does not answer. ") + "Last update: " + last.toLocaleTimeString() + ".";
			said.className = "late";
		};
	}

	function end() {
		source?.close();
		source = undefined;
	}

	rows.addEventListener("click", (event) => {
		const a = event.target.closest("a.row");
		if (!a || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) {
			return;
		}
		event.preventDefault();
		const row = a.parentElement;
		row.querySelector(".inner") ? close(row) : open(row);
	});
	document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()));
	begin();
})();
