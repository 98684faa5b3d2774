package play

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// otherClients is the row of the clients beyond mostClients.
const otherClients = "other clients"

// Replayed is the result of a replay.
type Replayed struct {
	ReadCounts
	From        string             `json:"from"` // of the calls, in UTC
	To          string             `json:"to"`
	Calls       int                `json:"calls"` // the calls that were played
	Unfinished  int                `json:"unfinished,omitempty"`
	Interrupted bool               `json:"interrupted,omitempty"`
	Upstreams   []ReplayedUpstream `json:"upstreams"`

	from, to time.Duration
}

// ReplayedUpstream is the part of the result about an upstream.
type ReplayedUpstream struct {
	Upstream  string   `json:"upstream"`
	Assumed   []string `json:"assumed"`
	NotPlayed []string `json:"not_played"`
	Total     *Row     `json:"total"`
	Clients   []*Row   `json:"clients"` // with the most calls
}

// A Row has the figures of a client: as recorded, and with each configuration.
type Row struct {
	Client string  `json:"client"`
	Flows  []*Flow `json:"flows"`

	flows []*Flow // also of configurations without the upstream
}

// A Flow has the figures of calls. An attempt may be repeated, so Sent may be higher than Calls.
type Flow struct {
	Way       string   `json:"way"` // "recorded", or a configuration
	Calls     int      `json:"calls"`
	Answered  int      `json:"answered"`    // calls that the upstream answered, with success or a rejection
	Sent      int      `json:"sent"`        // attempts
	Refused   int      `json:"refused"`     // calls that weir refused without an attempt
	Throttled int      `json:"throttled"`   // attempts that the upstream throttled
	Failed    int      `json:"failed"`      // attempts that failed
	WaitP50   *float64 `json:"wait_p50_ms"` // waits of all calls before and between attempts; null for "recorded"
	WaitP99   *float64 `json:"wait_p99_ms"`
	PaidUSD   *float64 `json:"paid_usd,omitempty"` // for successful attempts; null if the recording has no costs in dollars

	waits histogram
	paid  int64 // in the unit limit.USD
}

// attempt counts an attempt, and the cost of a successful one.
func (f *Flow) attempt(c outcome.Class, usage map[string]int64) {
	f.Sent++
	switch c {
	case outcome.OK:
		f.paid += usage[limit.USD]
	case outcome.Throttled:
		f.Throttled++
	case outcome.Failed, outcome.Unknown:
		f.Failed++
	}
}

func newRow(client string, columns int) *Row {
	row := &Row{Client: client}
	for range columns {
		row.flows = append(row.flows, &Flow{})
	}
	return row
}

// finish completes the figures for the report.
func (r *Row) finish(ways []string, s *server) *Row {
	r.Flows = nil
	for i, f := range r.flows {
		f.Way = ways[i]
		if s.billed[limit.USD] {
			f.PaidUSD = new(float64(f.paid) / 1e6)
		}
		if i > 0 {
			if s.lanes[i-1] == nil {
				continue
			}
			f.WaitP50, f.WaitP99 = new(f.waits.percentile(50)), new(f.waits.percentile(99))
		}
		r.Flows = append(r.Flows, f)
	}
	return r
}

// A histogram counts durations in bounded memory. A percentile is at most 3% too high.
type histogram struct {
	n     int
	count map[int]int
}

// add counts a duration.
func (h *histogram) add(d time.Duration) {
	if h.count == nil {
		h.count = make(map[int]int)
	}
	v := uint64(max(0, d.Microseconds()))
	shift := max(0, bits.Len64(v)-6)
	h.count[shift<<6|int(v>>shift)]++
	h.n++
}

// percentile returns a percentile in milliseconds.
func (h *histogram) percentile(p int) float64 {
	rank := (h.n*p + 99) / 100
	for _, i := range slices.Sorted(maps.Keys(h.count)) {
		if rank -= h.count[i]; rank <= 0 {
			shift := i >> 6
			highest := (uint64(i&63)+1)<<shift - 1
			return millis(time.Duration(highest) * time.Microsecond)
		}
	}
	return 0
}

// Text returns the result for a terminal of 80 columns.
func (x *Replayed) Text() string {
	var b strings.Builder
	for _, note := range x.notes() {
		b.WriteString(Wrap("", note) + "\n")
	}
	for i := range x.Upstreams {
		b.WriteString(x.Upstreams[i].text())
	}
	return b.String()
}

// notes describes the recording and its lines that were not played.
func (x *Replayed) notes() (all []string) {
	say := func(so bool, format string, args ...any) {
		if so {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	say(true, "%s in %s, from %s to %s UTC", many(x.Calls, "call"), many(int(x.Lines), "line"), x.From, x.To)
	say(x.Interrupted, "interrupted: the results cover the calls until then")
	say(x.Skipped > 0, "skipped %s, the first is line %d: unknown format, or no request", many(int(x.Skipped), "line"), x.FirstSkipped)
	say(len(x.Unknown) > 0, "not played, because they match no upstream: %s", names(x.Unknown))
	say(x.Suppressed > 0, "%s missing: weir logs at most 10 equal lines a second", many(int(x.Suppressed), "line"))
	say(x.Late > 0, "%s played late, because the log is not in the order of time", many(int(x.Late), "line"))
	say(x.Unfinished > 0 && !x.Interrupted, "%s still waiting an hour after the last recorded call", many(x.Unfinished, "call"))
	return all
}

// many formats a number of things.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// names lists upstreams that are not played. The upstream with the most lines comes first.
func names(unknown map[string]int64) string {
	const most = 10
	var all []string
	sorted := slices.SortedFunc(maps.Keys(unknown), func(a, b string) int {
		return cmp.Or(cmp.Compare(unknown[b], unknown[a]), cmp.Compare(a, b))
	})
	for _, name := range sorted[:min(most, len(sorted))] {
		all = append(all, fmt.Sprintf("%s (%d)", printable(name), unknown[name]))
	}
	if n := len(sorted) - most; n > 0 {
		all = append(all, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, ", ")
}

// printable shortens a text of a log and replaces characters that could control a terminal.
func printable(s string) string {
	return short(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s), 60)
}

func (u *ReplayedUpstream) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n== upstream %s ==\n", u.Upstream)
	b.WriteString(Wrap("", "assumed: "+strings.Join(u.Assumed, "; ")) + "\n")
	if len(u.NotPlayed) > 0 {
		b.WriteString(Wrap("", "not played: "+strings.Join(u.NotPlayed, ", ")) + "\n")
	}
	width, paid := 16, ""
	if u.paid() {
		width, paid = 10, "paid USD"
	}
	line := func(cells ...any) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-*s%9v%8v%8v%10v%7v%9v%8v%9v", append([]any{width}, cells...)...), " ") + "\n")
	}
	b.WriteString("\n")
	line("", "answered", "sent", "refused", "throttled", "failed", "wait p50", "p99", paid)
	for _, row := range u.rows() {
		b.WriteString(row.title() + "\n")
		for _, f := range row.Flows {
			p50, p99 := f.waited()
			line(short(f.Way, width), f.Answered, f.Sent, f.Refused, f.Throttled, f.Failed, p50, p99, f.dollars())
		}
	}
	return b.String()
}

// rows returns the total and the clients.
func (u *ReplayedUpstream) rows() []*Row { return append([]*Row{u.Total}, u.Clients...) }

// title names the client and the number of its calls.
func (r *Row) title() string {
	return fmt.Sprintf("%s: %s", cmp.Or(printable(r.Client), "no key"), many(r.flows[0].Calls, "call"))
}

// waited formats the waits.
func (f *Flow) waited() (p50, p99 string) {
	if f.WaitP50 == nil {
		return "-", "-"
	}
	return wait(*f.WaitP50), wait(*f.WaitP99)
}

// paid reports whether the recording has costs in dollars.
func (u *ReplayedUpstream) paid() bool { return u.Total.Flows[0].PaidUSD != nil }

// dollars formats the paid dollars; "" if they are unknown.
func (f *Flow) dollars() string {
	switch {
	case f.PaidUSD == nil:
		return ""
	case *f.PaidUSD < 1:
		return fmt.Sprintf("%.4f", *f.PaidUSD)
	}
	return fmt.Sprintf("%.2f", *f.PaidUSD)
}

// wait formats a wait in milliseconds.
func wait(ms float64) string {
	switch {
	case ms >= 1e6:
		return fmt.Sprintf("%.0f s", ms/1000)
	case ms >= 1000:
		return fmt.Sprintf("%.3g s", ms/1000)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
