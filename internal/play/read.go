package play

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// MostStory is the largest story file, in bytes.
const MostStory = 1 << 20

// defaultLength is the length of a story that states none.
const defaultLength = 2 * time.Minute

// Read reads a story. name is the path of the file, for errors. The errors are doc.Errors. Complete fills in what the
// story leaves open.
func Read(name string, data []byte) (*Story, error) {
	r := &storyReader{Reader: doc.Reader{File: name, What: "a story", Bounds: doc.Bounds{Bytes: MostStory, Nodes: 10_000, Depth: 10}}}
	s := &Story{Length: defaultLength}
	if root := r.Reader.Read(data); root != nil {
		r.story(root, s)
	}
	if len(r.Errs) > 0 {
		return nil, r.Errs.Sorted()
	}
	return s, nil
}

type storyReader struct{ doc.Reader }

func (r *storyReader) story(n *doc.Node, s *Story) {
	switch {
	case n.Kind == doc.Empty:
		r.Bad(n, "write story: and a name, and trouble:", "is empty")
		return
	case n.Get("story") == nil && n.Get("upstreams") != nil:
		r.Bad(n, "pass a configuration with --config", "is a configuration, not a story")
		return
	case n.Kind == doc.Mapping && n.Get("story") == nil:
		r.Missing(n, "story", "begin the file with story: and a name", "is missing: this is not a story")
		return
	}
	ok := r.Fields(n, map[string]func(*doc.Node){
		"story":    func(n *doc.Node) { s.Title, _ = r.Str(n, "a name") },
		"upstream": func(n *doc.Node) { s.Upstream, _ = r.Str(n, "the name of an upstream") },
		"length": func(n *doc.Node) {
			s.Length = r.duration(n, time.Second, 24*time.Hour)
		},
		"processes": func(n *doc.Node) { s.Processes = r.count(n, 1, 1000) },
		"machine":   func(n *doc.Node) { r.machine(n, &s.Machine) },
		"callers":   func(n *doc.Node) { r.callers(n, &s.Callers) },
		"trouble":   func(n *doc.Node) { r.troubles(n, s) },
		"expect":    func(n *doc.Node) { r.expect(n, s) },
	})
	if ok {
		r.check(n, s)
	}
}

// check compares the fields of a story with each other.
func (r *storyReader) check(n *doc.Node, s *Story) {
	at := n.Get("trouble")
	for i := range s.Troubles {
		t := &s.Troubles[i]
		if t.To >= s.Length {
			r.Bad(at, "make length longer, or for shorter", "%s ends at %v, and the story at %v: no time remains to measure the recovery", t.Kind, t.To, s.Length)
		}
		for _, o := range s.Troubles[:i] {
			if o.Kind == t.Kind && t.From < o.To {
				r.Bad(at, "", "%s at %v begins before %s at %v ends", t.Kind, t.From, o.Kind, o.From)
			}
		}
	}
	if s.has(StoreAway) && s.Processes == 0 {
		s.Processes = 10
	}
	if s.has(Flush) && s.Machine.Keys.Count == 0 {
		r.Bad(at, "add machine: {keys: {count: 1000, cold: 10x}}", "flush needs a machine with keys")
	}
	for _, e := range s.Expect {
		if e.Figure == "over_limit" && s.Processes == 0 {
			r.Bad(n.Get("expect"), "add processes: 10", "over_limit needs processes")
		}
	}
}

func (r *storyReader) machine(n *doc.Node, c *Capacity) {
	r.Fields(n, map[string]func(*doc.Node){
		"does":  func(n *doc.Node) { c.Does = r.perSecond(n) },
		"takes": func(n *doc.Node) { c.Takes = r.duration(n, time.Millisecond, 10*time.Minute) },
		"queue": func(n *doc.Node) {
			if n.Text != "endless" {
				c.Queue = r.count(n, 1, math.MaxInt32)
			}
		},
		"limit": func(n *doc.Node) { c.Limit = r.rate(n) },
		"keys":  func(n *doc.Node) { r.keys(n, &c.Keys) },
	})
}

func (r *storyReader) keys(n *doc.Node, k *Keys) {
	k.Cold = 10
	ok := r.Fields(n, map[string]func(*doc.Node){
		"count": func(n *doc.Node) { k.Count = r.count(n, 1, 1_000_000) },
		"cold":  func(n *doc.Node) { k.Cold = r.times(n, n.Text) },
		"lasts": func(n *doc.Node) { k.Lasts = r.duration(n, time.Millisecond, 24*time.Hour) },
		"order": func(n *doc.Node) { k.InTurn = r.choice(n, "random", "in-turn") == "in-turn" },
	})
	if ok && n.Get("count") == nil {
		r.Missing(n, "count", "", "is missing")
	}
}

func (r *storyReader) callers(n *doc.Node, c *Callers) {
	r.Fields(n, map[string]func(*doc.Node){
		"ask":       func(n *doc.Node) { c.Ask = r.perSecond(n) },
		"patience":  func(n *doc.Node) { c.Patience = r.duration(n, time.Millisecond, 10*time.Minute) },
		"client":    func(n *doc.Node) { c.Client = r.choice(n, Clients...) },
		"operation": func(n *doc.Node) { c.Operation, _ = r.Str(n, "the name of an operation") },
		"cost": func(n *doc.Node) {
			if !r.IsMapping(n) {
				return
			}
			c.Cost = make(map[string]int64)
			for _, e := range n.Fields {
				c.Cost[e.Name] = int64(r.count(e.Value, 0, math.MaxInt32))
			}
		},
	})
}

func (r *storyReader) troubles(n *doc.Node, s *Story) {
	if n.Kind != doc.List {
		r.Bad(n, "write [{at: 15s, for: 5s, what: stall}]", "%s: want a list", n.Show())
		return
	}
	for _, item := range n.Items {
		var t Trouble
		var lasts time.Duration
		ok := r.Fields(item, map[string]func(*doc.Node){
			"at":   func(n *doc.Node) { t.From = r.duration(n, time.Second, 24*time.Hour) },
			"for":  func(n *doc.Node) { lasts = r.duration(n, time.Millisecond, 24*time.Hour) },
			"what": func(n *doc.Node) { r.kind(n, &t) },
		})
		for _, name := range []string{"at", "what", "for"} {
			if item.Kind == doc.Mapping && item.Get(name) == nil && (name != "for" || t.Kind != Flush) {
				r.Missing(item, name, "", "is missing")
				ok = false
			}
		}
		if t.To = t.From + lasts; ok {
			s.Troubles = append(s.Troubles, t)
		}
	}
	slices.SortStableFunc(s.Troubles, func(a, b Trouble) int { return cmp.Compare(a.From, b.From) })
	if len(s.Troubles) > 0 {
		s.Name = s.Troubles[0].Kind.String()
	}
}

// kind reads a kind of trouble with its number: "stall", "slow 3x", "limit 20/s".
func (r *storyReader) kind(n *doc.Node, t *Trouble) {
	text, ok := r.Str(n, "a kind of trouble")
	if !ok {
		return
	}
	name, number, _ := strings.Cut(text, " ")
	i := slices.Index(kinds[:], name)
	if i < 0 {
		r.Bad(n, doc.Suggest(name, kinds[:]), "unknown trouble %s", doc.Quote(name))
		return
	}
	switch t.Kind = Kind(i); t.Kind {
	case Slow, Flood:
		t.Times = r.times(n, number)
	case Limit:
		t.Rate = r.rateOf(n, number)
	default:
		if number != "" {
			r.Bad(n, "write "+name, "%s: %s has no number", doc.Quote(text), name)
		}
	}
}

func (r *storyReader) expect(n *doc.Node, s *Story) {
	if !r.IsMapping(n) {
		return
	}
	for _, e := range n.Fields {
		if !slices.Contains(Figures, e.Name) {
			r.Unknown(e.Key, "figure", e.Name, Figures)
			continue
		}
		text, ok := r.Str(e.Value, "a bound")
		if !ok {
			continue
		}
		x, wrong, hint := parseExpectation(e.Name, text)
		if wrong != "" {
			r.Bad(e.Value, hint, "%s: %s", doc.Quote(text), wrong)
		}
		s.Expect = append(s.Expect, x)
	}
}

func (r *storyReader) duration(n *doc.Node, least, most time.Duration) time.Duration {
	text, ok := r.Str(n, "a duration")
	if !ok {
		return least
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		r.Bad(n, "write it as 250ms, 30s, 5m or 1h30m", "%s: is not a duration", doc.Quote(text))
	case d < least || d > most:
		r.Bad(n, "", "%s: must be from %v to %v", doc.Quote(text), least, most)
	}
	return d
}

func (r *storyReader) count(n *doc.Node, least, most int) int {
	text, ok := r.Str(n, "a whole number")
	if !ok {
		return least
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < least || v > most {
		r.Bad(n, "", "%s: want a whole number from %d to %d", doc.Quote(text), least, most)
	}
	return v
}

func (r *storyReader) rate(n *doc.Node) bucket.Rate {
	text, ok := r.Str(n, "a rate")
	if !ok {
		return bucket.Rate{}
	}
	return r.rateOf(n, text)
}

func (r *storyReader) rateOf(n *doc.Node, text string) bucket.Rate {
	rate, err := bucket.ParseRate(text)
	if err != nil {
		r.Bad(n, "write a rate such as 100/s or 20/min", "%s: is not a rate", doc.Quote(text))
	}
	return rate
}

func (r *storyReader) perSecond(n *doc.Node) float64 {
	rate := r.rate(n)
	if rate.Per <= 0 {
		return 1
	}
	return rate.PerSecond()
}

// times reads a factor such as 10x.
func (r *storyReader) times(n *doc.Node, text string) float64 {
	digits, isTimes := strings.CutSuffix(text, "x")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || !isTimes || !(v >= 1 && v <= 1000) {
		r.Bad(n, "", "%s: want a factor from 1x to 1000x", doc.Quote(text))
		return 1
	}
	return v
}

func (r *storyReader) choice(n *doc.Node, names ...string) string {
	text, ok := r.Str(n, "a name")
	if ok && !slices.Contains(names, text) {
		r.Bad(n, doc.Suggest(text, names), "unknown value %s", doc.Quote(text))
	}
	return text
}

// Write returns a story as a file that Read reads.
func (s *Story) Write() string {
	var b strings.Builder
	fmt.Fprintf(&b, "story: %s\n", s.Title)
	if s.Upstream != "" {
		fmt.Fprintf(&b, "upstream: %s\n", s.Upstream)
	}
	fmt.Fprintf(&b, "machine: {does: %s, takes: %v}\n", perSecond(s.Machine.Does), cmp.Or(s.Machine.Takes, usualTakes))
	fmt.Fprintf(&b, "callers: {ask: %s, patience: %v, client: %s}\n", perSecond(s.Callers.Ask), s.Callers.patience(), cmp.Or(s.Callers.Client, Clients[0]))
	b.WriteString("trouble:\n")
	for i := range s.Troubles {
		t := &s.Troubles[i]
		fmt.Fprintf(&b, "  - {at: %v, for: %v, what: %s}\n", t.From, t.To-t.From, t.Kind)
	}
	fmt.Fprintf(&b, "length: %v\n", s.Length)
	return b.String()
}

// perSecond returns a rate in the format of a file: whole calls per a round period.
func perSecond(v float64) string {
	for _, p := range []struct {
		name string
		per  float64
	}{{"s", 1}, {"min", 60}, {"h", 3600}} {
		if n := v * p.per; math.Abs(n-math.Round(n)) < 1e-9*n {
			return fmt.Sprintf("%.0f/%s", n, p.name)
		}
	}
	return fmt.Sprintf("%.0f/1000h", v*3_600_000)
}
