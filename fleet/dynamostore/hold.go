package dynamostore

import (
	"fmt"
	"strconv"
)

// A hold is for how many microseconds the process that holds its grants longest may use them, as
// attribute o has it. What package limit has in hold.go this does with as few writes as there
// can be: as long as all hold alike it is written once. A process that holds for less than that notes
// since when, and for how long; one that holds for longer than noted corrects it. What has stood
// there for long enough becomes the hold.
type hold struct {
	*view
	longest int64 // what the item has, and what it is to have
	next    int64
	text    string // which says that
}

// holdMemory is for how long a bucket allows for the longest hold after it was used last.
const holdMemory = 60_000_000

func (v *view) hold(memory int64) hold {
	mine := v.rule.Hold
	h := hold{view: v, longest: mine, next: mine, text: strconv.FormatInt(mine, 10)}
	var longest, since, noted int64
	if n, _ := fmt.Sscanf(v.item["o"+v.at], "%d.%d.%d", &longest, &since, &noted); n == 0 || longest <= mine {
		return h
	}
	h.longest = longest
	switch noted = max(noted, mine); {
	case since == 0:
		since = v.now.label
	case v.now.lo >= since+memory && noted < longest:
		h.becomes(noted)
		return h
	}
	h.next, h.text = longest, fmt.Sprintf("%d.%d.%d", longest, since, noted)
	return h
}

func (h *hold) becomes(us int64) { h.next, h.text = us, strconv.FormatInt(us, 10) }

// beyond is by how much others hold longer than the asker, still is what that will be, and less
// by how much that is less.
func (h *hold) beyond() int64 { return h.longest - h.rule.Hold }
func (h *hold) still() int64  { return h.next - h.rule.Hold }
func (h *hold) less() int64   { return h.longest - h.next }

// write adds to an update that the hold must be as it was seen, and what it becomes.
func (h *hold) write(u *update) {
	name := "o" + h.at
	old, ok := h.item[name]
	u.same(h.item, name)
	if old != h.text && (ok || h.next > 0) {
		u.strict = true
		u.setText(name, h.text)
	}
}
