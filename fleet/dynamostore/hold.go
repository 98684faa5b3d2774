package dynamostore

import (
	"fmt"
	"strconv"
)

// A hold is the longest time in microseconds for which a process may use its grants. It is attribute o. It
// implements hold.go of package limit with as few writes as possible. While all processes have the same hold, it is
// written once. A process with a shorter hold adds that hold and the present time, and a process with a longer one
// corrects it. After a period in which no process had a longer hold, the shorter one replaces it.
type hold struct {
	*view
	longest int64 // the item's hold, and the hold to write
	next    int64
	text    string // the attribute's text for next
}

// holdMemory is how long a bucket remembers the longest hold after its last use, in microseconds.
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

// beyond is how much longer other processes hold than this one. still is the same for the new hold. less is by how
// much the new hold is shorter.
func (h *hold) beyond() int64 { return h.longest - h.rule.Hold }
func (h *hold) still() int64  { return h.next - h.rule.Hold }
func (h *hold) less() int64   { return h.longest - h.next }

// write adds the condition that the hold is unchanged, and the new hold.
func (h *hold) write(u *update) {
	name := "o" + h.at
	old, ok := h.item[name]
	u.same(h.item, name)
	if old != h.text && (ok || h.next > 0) {
		u.strict = true
		u.setText(name, h.text)
	}
}
