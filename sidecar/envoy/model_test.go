package envoy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/seed1158cd35/weir/fleet"
)

// A model is the simplest implementation of the service: a count for each counter and window.
type model struct {
	rules  *Rules
	counts map[string]int64
}

// decide answers a request. It changes the counts only if the request is granted.
func (m *model) decide(now time.Time, req *rls.RateLimitRequest) string {
	next := make(map[string]int64)
	count := func(at string) int64 {
		if n, ok := next[at]; ok {
			return n
		}
		return m.counts[at]
	}
	places := make([]match, len(req.Descriptors))
	at := make([]string, len(places))
	net := make(map[string]int64)
	for i, d := range req.Descriptors {
		places[i] = m.rules.match(req.Domain, d, nil)
		if places[i].quota != nil {
			at[i] = fmt.Sprint(places[i].store.Name, "|", places[i].key, "|", places[i].span.windows(now).Start)
			net[at[i]] += hits(req, d)
		}
	}
	refused := false
	for i, d := range req.Descriptors {
		q := places[i].quota
		if q == nil {
			continue
		}
		check := hits(req, d) == 0 && m.counts[at[i]] >= int64(q.amount)
		charge := net[at[i]] > 0 && m.counts[at[i]]+net[at[i]] > int64(q.amount)
		refused = refused || check && !q.shadow && !q.soft || charge && !q.open()
	}
	text := ""
	for i := range places {
		q := places[i].quota
		if q == nil {
			text += "-; "
			continue
		}
		if !refused {
			next[at[i]] = max(0, m.counts[at[i]]+net[at[i]])
		}
		text += fmt.Sprint(q.amount, " left at the end ", max(0, int64(q.amount)-count(at[i])), "; ")
	}
	for k, n := range next {
		m.counts[k] = n
	}
	return fmt.Sprint(map[bool]string{true: "refused: ", false: "granted: "}[refused], text)
}

// told returns a response in the model's form. Only the last place of a counter shows the final remaining units.
func told(req *rls.RateLimitRequest, rules *Rules, resp *rls.RateLimitResponse) string {
	text := map[bool]string{true: "refused: ", false: "granted: "}[resp.OverallCode == over]
	left := make(map[string]uint32)
	name := func(i int) string {
		m := rules.match(req.Domain, req.Descriptors[i], nil)
		return m.store.Name + "|" + m.key
	}
	for i, s := range resp.Statuses {
		if s.CurrentLimit != nil {
			left[name(i)] = s.LimitRemaining
		}
	}
	for i, s := range resp.Statuses {
		if s.CurrentLimit == nil {
			text += "-; "
		} else {
			text += fmt.Sprint(s.CurrentLimit.RequestsPerUnit, " left at the end ", left[name(i)], "; ")
		}
	}
	return text
}

func TestAnswersAreThoseOfTheModel(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	rules := must(Load("testdata/rules"))
	keys := []string{"key2", "key3", "key4", "none", "shadow", "quota", "tokens", "key9"}
	granted, refused := 0, 0
	for round := range 40 {
		now := noon
		clock := func() time.Time { return now }
		off := time.Duration(r.Int64N(int64(2*time.Hour))) - time.Hour
		s, err := New(Config{Timeout: time.Minute}, fleet.NewMemory(clock), Options{Clock: func() time.Time { return now.Add(off) }})
		if err != nil {
			t.Fatal(err)
		}
		s.Set(rules)
		m := &model{rules, make(map[string]int64)}
		for step := range 200 {
			req := request("another")
			for range 1 + r.IntN(4) {
				text := fmt.Sprintf("%s=%d", keys[r.IntN(len(keys))], r.IntN(2))
				switch r.IntN(6) {
				case 0:
					text += " +0"
				case 1:
					text += fmt.Sprint(" -", 1+r.IntN(5))
				case 2:
					text += fmt.Sprint(" +", r.IntN(12))
				}
				req.Descriptors = append(req.Descriptors, descriptor(text))
			}
			req.HitsAddend = uint32(r.IntN(3))
			resp, err := s.ShouldRateLimit(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			want, got := m.decide(now, req), told(req, rules, resp)
			if got != want {
				t.Fatalf("seed %d, round %d, request %d: %v\n got %s\nwant %s\n%v", seed, round, step, req, got, want, resp)
			}
			for i, st := range resp.Statuses {
				if st.Code == over && resp.OverallCode != over {
					t.Fatalf("seed %d: descriptor %d is over the limit and the request is not: %v", seed, i, resp)
				}
			}
			if resp.OverallCode == over {
				refused++
			} else {
				granted++
			}
			now = now.Add(time.Duration(r.Int64N(int64(20 * time.Second))))
		}
	}
	if granted < 1000 || refused < 1000 {
		t.Errorf("%d granted and %d refused: the cases are not what they should be", granted, refused)
	}
}
