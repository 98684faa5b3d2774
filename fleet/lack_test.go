package fleet

import (
	"testing"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// The shortage in a refusal agrees with the state of the limit at the same instant. Otherwise a refusal would
// report that a quota is used up, and also that its state is unknown.
func TestWhoWaitsInVainHearsWhatIsSaidOfTheLimit(t *testing.T) {
	l := limit.Limit{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 200}, Every: bucket.Day}
	r, p := cutLease(t, l)
	g := p.group
	g.standing.part, g.standing.rules.without = 0, Without{} // it holds no part, and its heartbeat has no response yet
	now := 3 * sec
	p.seen = sight{known: true, at: now - sec, grant: Grant{Left: 0, Reset: 1000 * sec, Wait: 1000 * sec}}
	q := g.queue([]*lease{p})
	q.mu.Lock()
	v := q.inVain(now, now+1000*sec)
	q.mu.Unlock()
	var permit limit.Charges
	permit.Add(limit.Charge{Registry: r, Key: "", Cost: 1})
	w := permit.Lacks(now, 0)
	if v.Lack != w.Lack {
		t.Errorf("told %q, and the limit says %q", v.Lack.Word(), w.Lack.Word())
	}
}
